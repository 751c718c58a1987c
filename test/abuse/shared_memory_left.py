# Named shared memory and semaphores outlive their maker. Another execution must not find them.
from multiprocessing import shared_memory
import os
for name in ("abuse_left", "psm_abuse_left"):
    try:
        memory = shared_memory.SharedMemory(name)
        print("BREACH it was there", name)
    except OSError:
        try:
            shared_memory.SharedMemory(name, create=True, size=4096)
        except OSError:
            pass
try:
    open("/dev/shm/abuse-left", "w").write("x")
except OSError:
    pass
os._exit(0) if print("held", flush=True) is None else None
