# Tries to pass information to another program by the public data, which all programs see: locks, and which pages of a file are in memory.
import ctypes, fcntl, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
one, other = open("input/train.csv"), open("input/train.csv")
try:
    fcntl.flock(one, fcntl.LOCK_EX)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("BREACH flock")
address = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, one.fileno(), ctypes.c_long(0))
mincore = 27 if os.uname().machine == "x86_64" else 232
if libc.syscall(mincore, ctypes.c_void_p(address), ctypes.c_size_t(4096), ctypes.create_string_buffer(1)) == 0:
    print("BREACH mincore")
statistics = (ctypes.c_uint64 * 5)()
if libc.syscall(451, one.fileno(), (ctypes.c_uint64 * 2)(0, 4096), statistics, 0) == 0:
    print("BREACH cachestat")
print("held")
