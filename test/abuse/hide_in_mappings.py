# Keeps files without a name and a descriptor: they live on in a mapping of one page each.
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
try:
    for number in range(8):
        descriptor = os.open("gone", os.O_CREAT | os.O_RDWR)
        for _ in range(30):
            os.write(descriptor, b"x" * (1 << 20))
        if libc.mmap(None, ctypes.c_size_t(4096), 1, 1, descriptor, ctypes.c_long(0)) in (None, ctypes.c_void_p(-1).value):
            raise OSError
        os.unlink("gone")
        os.close(descriptor)
    time.sleep(3)
    print("BREACH")
except OSError:
    print("held")
