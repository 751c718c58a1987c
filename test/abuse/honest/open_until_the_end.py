# Leaves the work of the last moment to the interpreter: a file that is never closed, its own source, a captured stdout.
import contextlib
import csv
import inspect
import io

import pandas as pd

captured = io.StringIO()
with contextlib.redirect_stdout(captured):
    train = pd.DataFrame({"id": [1, 2], "y": [1.0, 2.0]})
    print(len(train))


def own():
    return len(open(__file__).read())


out = csv.writer(open("submission.csv", "w", newline=""))
out.writerow(["id", "y"])
out.writerow([int(captured.getvalue()), own()])
out.writerow([3, len(inspect.getsource(own))])
