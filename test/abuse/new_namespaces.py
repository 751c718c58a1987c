# New namespaces give anybody the rights of root in them, and make a large part of the kernel reachable.
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000, 0x04000000, 0x02000000):
    if libc.unshare(flag) == 0:
        print("BREACH unshare", hex(flag))
clone, clone3 = (56, 435) if os.uname().machine == "x86_64" else (220, 435)
child = libc.syscall(clone, 0x10000000 | 17, None, None, None, None)
if child == 0:
    os._exit(0)
if child > 0:
    print("BREACH clone")
arguments = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)
child = libc.syscall(clone3, arguments, ctypes.c_size_t(88))
if child == 0:
    os._exit(0)
if child > 0:
    print("BREACH clone3")
print("held")
