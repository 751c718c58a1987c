# The submission is a link by /proc to a file without a name.
import os
descriptor = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(descriptor, b"id,target\n")
try:
    os.link(f"/proc/self/fd/{descriptor}", "submission.csv")
except OSError:
    os.symlink(f"/proc/self/fd/{descriptor}", "submission.csv")
