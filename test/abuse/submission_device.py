# The submission is a device node: reading it never ends.
import os, stat
try:
    os.mknod("submission.csv", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    print("BREACH mknod")
except OSError:
    print("held")
