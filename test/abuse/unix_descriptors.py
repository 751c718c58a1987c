# Sends descriptors over unix sockets, which the kernel counts by user and which would hide files from the watch: over a pair, over a
# connection of its own, and by the C library.
import array, ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
pair = socket.socketpair()
connections = [pair]
try:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.environ["TMPDIR"] + "/own")
    listener.listen(1)
    client = socket.socket(socket.AF_UNIX)
    client.connect(os.environ["TMPDIR"] + "/own")
    connections.append((client, listener.accept()[0]))
except OSError:
    pass
for one, other in connections:
    try:
        one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
        print("BREACH sendmsg")
    except OSError:
        pass
    for name, arguments in (("sendmsg", (one.fileno(), None, 0)), ("sendmmsg", (one.fileno(), None, 0, 0))):
        if getattr(libc, name)(*arguments) != -1 or ctypes.get_errno() != 1:
            print("BREACH", name, ctypes.get_errno())
    for option, value in ((socket.SO_PASSCRED, 1), (socket.SO_SNDBUF, 100 << 20), (socket.SO_RCVBUF, 100 << 20), (76, 1)):
        try:
            one.setsockopt(socket.SOL_SOCKET, option, value)
            print("BREACH option", option)
        except OSError:
            pass
    for option in (socket.SO_PEERCRED, 77):
        try:
            one.getsockopt(socket.SOL_SOCKET, option, 12)
            print("BREACH", option)
        except OSError:
            pass
print("held")
