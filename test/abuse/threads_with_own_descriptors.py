# A thread with its own descriptor table has 1,024 more that a check of the process does not show: by clone without CLONE_FILES, or by
# close_range with CLOSE_RANGE_UNSHARE.
import ctypes, os, threading
libc = ctypes.CDLL(None, use_errno=True)
clone = 56 if os.uname().machine == "x86_64" else 220
VM, FS, SIGHAND, THREAD, SYSVSEM = 0x100, 0x200, 0x800, 0x10000, 0x40000
if libc.syscall(clone, VM | FS | SIGHAND | THREAD | SYSVSEM, None, None, None, None) != -1:
    print("BREACH clone")
def unshare():
    if libc.syscall(436, 1000, 1000, 2) == 0 or libc.unshare(0x400) == 0:
        print("BREACH close_range")
thread = threading.Thread(target=unshare)
thread.start()
thread.join()
print("held")
