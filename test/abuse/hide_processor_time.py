# Works in an orphan that nobody waits for, so that its processor time is in no wait status. It is counted all the same.
import os, time
def burn():
    end = time.monotonic() + 1
    while time.monotonic() < end:
        pass
try:
    if os.fork() == 0:
        if os.fork() == 0:
            burn()
        os._exit(0)
    os.wait()
    time.sleep(1.2)
except OSError:
    burn()
print("held")
