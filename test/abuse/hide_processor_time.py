# Works in an orphan that nobody waits for, so that its processor time is in no wait status. It is counted all the same.
import os, time
def burn():
    end = time.process_time() + 0.4
    while time.process_time() < end:
        pass
try:
    read, write = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            burn()
            time.sleep(0.2)
            os.write(write, b"x")
        os._exit(0)
    os.wait()
    os.read(read, 1)
except OSError:
    burn()
print("held")
