# Sends unexpected requests to descriptors (ioctl, fcntl, prctl): all numbers of the usual kinds, to a file, a directory, a device and a
# pair of sockets. Only the few allowed ones may work.
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
IOCTL = {0x541B, 0x5421, 0x5451, 0x5450, 0x5401, 0x802C542A, 0x5413, 0x540F}
open("own", "w").close()
one, other = socket.socketpair()
descriptors = (os.open("own", os.O_RDWR), os.open(".", os.O_RDONLY), os.open("/dev/null", os.O_RDWR), one.fileno())
buffer = ctypes.create_string_buffer(4096)
requests = [0x5400 + low for low in range(256)] + [0x8900 + low for low in range(256)]
requests += [direction << 30 | size << 16 | kind << 8 | low for direction in range(4) for size in (0, 4, 8, 16, 28, 128) for kind in (0x66, 0x58, 0x94, 0x12, 0xB7) for low in range(0, 140)]
for descriptor in descriptors:
    for request in requests:
        if request not in IOCTL and libc.ioctl(descriptor, ctypes.c_ulong(request), buffer) != -1:
            print("BREACH ioctl", hex(request), descriptor)
for command in [*range(8, 64), *range(1024, 1060)]:
    if command not in (1030, 1032) and libc.fcntl(descriptors[0], command, 0) != -1:
        print("BREACH fcntl", command)
PRCTL = {2, 3, 15, 16, 21, 23, 27, 29, 30, 39, 41, 42}
for option in [*range(1, 100), 0x53564D41, 0x59616D61, 0x41555856]:
    if option not in PRCTL and libc.prctl(option, 0, 0, 0, 0) != -1:
        print("BREACH prctl", option)
print("held")
