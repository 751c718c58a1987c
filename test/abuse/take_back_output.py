# Opens its own output for reading, and takes back bytes that were counted: the forwarder would wait for bytes that never come, and miss a
# kill.
import os
taken = 0
try:
    back = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
    for _ in range(200):
        os.write(1, b"x" * 1000 + b"\n")
        try:
            taken += len(os.read(back, 4096))
        except BlockingIOError:
            pass
except OSError:
    pass
print("BREACH" if taken else "held")
