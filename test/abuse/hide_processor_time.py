# Works in a child that cannot be waited for: while SIGCHLD is ignored the kernel drops a child's processor time at its end, so no wait
# status includes it. Only a check while the child runs sees it.
import os, signal, time
def burn():
    end = time.process_time() + 0.4
    while time.process_time() < end:
        pass
try:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    read, write = os.pipe()
    if os.fork() == 0:
        burn()
        os._exit(0)
    os.close(write)
    os.read(read, 1)
    spent = sum(os.times()[:4])
    print("held" if spent < 0.2 else f"its own times say {spent} s: nothing is hidden")
except OSError:
    burn()
    print("held")
