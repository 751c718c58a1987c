# CLONE_PARENT makes a sibling, a child of the zygote that the zygote does not know.
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
clone, CLONE_PARENT, SIGCHLD = (56 if os.uname().machine == "x86_64" else 220), 0x8000, 17
child = libc.syscall(clone, CLONE_PARENT | SIGCHLD, None, None, None, None)
if child == 0:
    time.sleep(600)
if child > 0:
    print("BREACH")
print("held")
