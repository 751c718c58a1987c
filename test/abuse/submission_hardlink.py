# The submission is a hard link to another file: the answers, the public data, finally one of its own files.
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
