# Takes huge pages, which come from a pool of the machine and count nowhere else, and locked memory, which cannot be swapped.
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
address = libc.mmap(None, ctypes.c_size_t(64 << 20), 3, 0x22 | 0x40000, -1, ctypes.c_long(0))  # MAP_HUGETLB
if address != ctypes.c_void_p(-1).value:
    ctypes.memset(address, 1, 64 << 20)
memory = mmap.mmap(-1, 32 << 20)
if libc.mlockall(3) == 0:
    print("BREACH mlockall")
print("held")
