# A submission of mode 0, which may not be read.
import os
os.close(os.open("submission.csv", os.O_CREAT | os.O_WRONLY, 0o000))
print("held")
