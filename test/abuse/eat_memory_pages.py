# Takes pages that belong to no process: vmsplice into pipes, which keep huge pages whole; enlarged pipes; enlarged buffers of sockets.
import ctypes, fcntl, mmap, os, socket, time
libc = ctypes.CDLL(None, use_errno=True)
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
pinned = 0
for _ in range(400):
    read_end, write_end = os.pipe()
    region = mmap.mmap(-1, 4 << 20)
    region.madvise(14)  # MADV_HUGEPAGE
    for offset in range(0, 4 << 20, 4096):
        region[offset] = 1
    vector = Vector(ctypes.addressof(ctypes.c_char.from_buffer(region)), 4096)
    if libc.vmsplice(write_end, ctypes.byref(vector), ctypes.c_ulong(1), 0) > 0:
        pinned += 1
    elif not pinned:
        break
for size in (1 << 20,):
    try:
        if fcntl.fcntl(write_end, 1031, size) > 65536:
            print("BREACH a larger pipe")
    except OSError:
        pass
one, other = socket.socketpair()
try:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 20)
    print("BREACH larger buffers")
except OSError:
    pass
print("BREACH" if pinned else "held")
