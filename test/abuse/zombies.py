# Children that end without being waited for: each keeps a process id.
import os, time
try:
    for _ in range(5000):
        if os.fork() == 0:
            os._exit(0)
    time.sleep(2)
    print("BREACH")
except OSError:
    print("held")
