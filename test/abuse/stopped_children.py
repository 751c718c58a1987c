# Stopped children that nobody traces and that ignore every signal, in sessions of their own, each the child of another.
import os, signal, time
try:
    for _ in range(20):
        if os.fork() == 0:
            os.setsid()
            for number in range(1, 65):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            continue
        os.kill(os.getpid(), signal.SIGSTOP)
        break
except OSError:
    pass
while True:
    time.sleep(1)
