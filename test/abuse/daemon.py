# Leaves a daemon behind (double fork, setsid), which would run after the execution and beside the next ones.
import os, time
try:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                open("alive", "w").write(str(time.time()))
                time.sleep(0.01)
        os._exit(0)
    time.sleep(0.1)
except OSError:
    pass
print("held")
