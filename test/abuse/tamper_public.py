# Changes the public data for later executions.
import os
for action in (lambda: open("input/train.csv", "a").write("x"), lambda: os.unlink("input/train.csv"),
               lambda: os.rename("input/train.csv", "input/other"), lambda: open("input/new.csv", "w"),
               lambda: os.chmod("input/train.csv", 0), lambda: os.truncate("input/train.csv", 0),
               lambda: os.open("input/train.csv", os.O_RDONLY | os.O_TRUNC)):
    try:
        action()
    except OSError:
        pass
print("held")
