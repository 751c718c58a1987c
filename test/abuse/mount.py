# Mounts over its own limits, the machine's disk, and out of its root, by the old and the new interface.
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None) == 0:
    print("BREACH mount")
if libc.umount2(b"/proc", 2) == 0:
    print("BREACH umount")
if libc.chroot(b".") == 0:
    print("BREACH chroot")
for number in (428, 429, 430, 432, 442):
    if libc.syscall(number, 0, b"/", 0, 0, 0) != -1 or ctypes.get_errno() not in (1, 38):
        print("BREACH system call", number, ctypes.get_errno())
print("held")
