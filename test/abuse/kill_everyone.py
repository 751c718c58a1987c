# Sends signals to all processes, the parent's group, the supervisor, and a bystander of the same user.
import ctypes, os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for pid in (-1, @SUPERVISOR@, @VICTIM@, os.getppid(), -os.getppid(), -@VICTIM@):
    if pid == 0:
        continue
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
        try:
            os.kill(pid, number)
        except OSError:
            pass
libc = ctypes.CDLL(None)
libc.syscall(200 if os.uname().machine == "x86_64" else 130, @VICTIM@, 9)
print("held")
