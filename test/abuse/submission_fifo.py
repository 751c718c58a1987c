# The submission is a pipe without a writer: opening it waits for ever.
import os
try:
    os.mkfifo("submission.csv")
    print("BREACH mkfifo")
except OSError:
    print("held")
