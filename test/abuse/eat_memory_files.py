# Takes memory as files, which no memory limit of a process counts: memfd, /dev/shm, scratch.
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if hasattr(os, "memfd_create"):
    try:
        os.memfd_create("x")
        print("BREACH memfd_create")
    except OSError:
        pass
written = 0
for place in ("/dev/shm", "/tmp", "."):
    try:
        with open(place + "/big", "wb") as file:
            for _ in range(512):
                written += file.write(b"x" * (1 << 20))
    except OSError:
        pass
if written > 100 << 20:
    print("BREACH", written)
print("held")
