# Twenty processes print single bytes at the same moment.
import os, time
try:
    for _ in range(20):
        if os.fork() == 0:
            while True:
                os.write(1, b"x")
except OSError:
    pass
while True:
    os.write(2, b"y")
