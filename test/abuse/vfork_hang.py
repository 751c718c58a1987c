# A parent that waits for a vfork child without an end sleeps uninterruptibly: only SIGKILL ends it.
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
clone, CLONE_VFORK, SIGCHLD = (56 if os.uname().machine == "x86_64" else 220), 0x4000, 17
child = libc.syscall(clone, CLONE_VFORK | SIGCHLD, None, None, None, None)
if child == 0:
    time.sleep(600)
while True:
    time.sleep(1)
