# A pipe that nobody writes to: who opens it waits for ever.
import os
try:
    os.mkfifo("submission.csv")
    print("BREACH mkfifo")
except OSError:
    print("held")
