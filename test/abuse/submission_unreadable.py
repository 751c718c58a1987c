# A submission that may not be read, of mode 0.
import os
os.close(os.open("submission.csv", os.O_CREAT | os.O_WRONLY, 0o000))
print("held")
