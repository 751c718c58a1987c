# A second name of another file: of the answers, of the public data, at last of one of its own.
import os
for source in ("@ANSWERS@", "input/train.csv"):
    try:
        os.link(source, "submission.csv")
        print("BREACH linked", source)
    except OSError:
        pass
open("mine.csv", "w").write("id,target\n")
try:
    os.link("mine.csv", "submission.csv")
except OSError:
    pass
