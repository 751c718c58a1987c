# Leaves the work of the last moment to the interpreter: a file that is never closed, a finalizer, its own source, a captured stdout.
import contextlib
import csv
import inspect
import io

import pandas as pd

captured = io.StringIO()
with contextlib.redirect_stdout(captured):
    train = pd.DataFrame({"id": [1, 2], "y": [1.0, 2.0]})
    print(len(train))
out = csv.writer(open("submission.csv", "w", newline=""))
out.writerow(["id", "y"])
out.writerow([int(captured.getvalue()), len(open(__file__).read())])


class Last:
    def __del__(self, out=out):
        out.writerow([3, len(source)])


source = inspect.getsource(Last)
last = Last()
