# Many processes, each below the address-space limit, together far above it. Needs fork.
import os, time
try:
    for _ in range(6):
        if os.fork() == 0:
            kept = bytearray(b"x") * (100 << 20)
            time.sleep(60)
    time.sleep(60)
except OSError:
    print("held")
