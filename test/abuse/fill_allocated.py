# Allocates the whole disk at once with fallocate, without writing.
import os
descriptor = os.open("big", os.O_CREAT | os.O_RDWR)
for size in (1 << 40, 10 << 30, 1 << 30):
    try:
        os.posix_fallocate(descriptor, 0, size)
        print("BREACH", size)
    except OSError:
        pass
print("held")
