# Writes a submission, and leaves a process that changes it after the program's end, while it is read.
import os
open("submission.csv", "w").write("id,target\n1,first\n")
try:
    if os.fork() == 0:
        os.setsid()
        os.closerange(0, 3)
        while True:
            with open("submission.csv", "w") as file:
                file.write("id,target\n1,changed\n" * 1000)
except OSError:
    pass
print("held")
