# Sets attributes that stay on a file (sync, no access times, immutable, verity), by every available call.
import array, ctypes, fcntl, os, struct
libc = ctypes.CDLL(None, use_errno=True)
open("own", "w").close()
if libc.syscall(469, -100, b"own", ctypes.create_string_buffer(struct.pack("<QIIIII", 0x20 | 0x40, 0, 0, 0, 0, 0)), ctypes.c_size_t(28), 0) == 0:
    print("BREACH file_setattr")
if libc.syscall(468, -100, b"own", ctypes.create_string_buffer(28), ctypes.c_size_t(28), 0) == 0:
    print("BREACH file_getattr")
for request, argument in ((0x40086602, struct.pack("q", 0x08)), (0x401C5820, struct.pack("<IIIII8x", 0x20, 0, 0, 0, 0)),
                          (0x40806685, bytes(128)), (0x40086604, struct.pack("q", 1))):
    with open("own") as file:
        try:
            fcntl.ioctl(file, request, argument)
            print("BREACH", hex(request))
        except OSError:
            pass
try:
    os.setxattr("own", "user.x", b"x" * 4000)
    print("BREACH setxattr")
except OSError:
    pass
print("held")
