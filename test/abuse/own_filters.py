# Adds filters and rule sets of its own, which may only restrict: afterwards a socket, a file outside and a namespace must still be
# impossible.
import ctypes, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
allow_all = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000))
program = struct.pack("@HxxxxxxP", 1, ctypes.addressof(allow_all))
libc.prctl(22, 2, ctypes.create_string_buffer(program), 0, 0)
libc.prctl(38, 0, 0, 0, 0)  # no_new_privs off
ruleset = libc.syscall(444, ctypes.create_string_buffer(struct.pack("<Q", 4)), ctypes.c_size_t(8), 0)
if ruleset >= 0:
    root = os.open("/", os.O_PATH)
    libc.syscall(445, ruleset, 1, ctypes.create_string_buffer(struct.pack("<Qi", 4, root)), 0)
    libc.syscall(446, ruleset, 0)
for action in (socket.socket, lambda: open("@ANSWERS@"), lambda: open("@OUTSIDE@/precious", "a"), lambda: os.listdir("@OUTSIDE@")):
    try:
        action()
        print("BREACH")
    except OSError:
        pass
if libc.unshare(0x10000000) == 0:
    print("BREACH unshare")
print("held")
