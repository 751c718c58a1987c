# Uses one page in each 2 MB: a page table for each page, in many processes.
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
def fill():
    size = 240 << 20
    region = libc.mmap(None, ctypes.c_size_t(size), 3, 0x22 | 0x4000, -1, ctypes.c_long(0))
    if region in (None, ctypes.c_void_p(-1).value):
        return
    libc.madvise(ctypes.c_void_p(region), ctypes.c_size_t(size), 15)  # MADV_NOHUGEPAGE
    for offset in range(0, size, 2 << 20):
        ctypes.c_char.from_address(region + offset).value = b"x"
try:
    for _ in range(28):
        if os.fork() == 0:
            fill()
            time.sleep(60)
    time.sleep(3)
except OSError:
    fill()
print("held", flush=True)
os._exit(0)
