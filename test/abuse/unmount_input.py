# Replaces the public data, in its own scratch directory and under the name of the submission.
import os
for action in (lambda: os.rename("input", "other"), lambda: os.rmdir("input"), lambda: os.unlink("input"), lambda: os.rename("input/train.csv", "train.csv"),
               lambda: os.link("input/train.csv", "linked"), lambda: os.unlink("input/train.csv"), lambda: os.truncate("input/train.csv", 0),
               lambda: os.mkdir("input/new"), lambda: os.symlink("@ANSWERS@", "input/link")):
    try:
        action()
    except OSError:
        pass
try:
    if "secret" in open("input/link").read():
        print("BREACH")
except OSError:
    pass
print("held")
