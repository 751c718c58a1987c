# Gives unix sockets names where others would find them, connects to every name in reach, and tries other kinds and families of sockets.
import os, socket
def tried(what, action):
    try:
        action()
        print("BREACH", what)
    except OSError:
        pass
for folder in ("/", "/usr", "/etc", "/tmp/..", "/proc", "/dev", "input", "@OUTSIDE@", "@PUBLIC@", os.path.dirname(os.__file__)):
    tried("bind in " + folder, lambda: socket.socket(socket.AF_UNIX).bind(folder + "/planted"))
names = {"/run/docker.sock", "/var/run/nscd/socket", "/tmp/.X11-unix/X0", "\0@ABSTRACT@", "\0/tmp/.X11-unix/X0", "@OUTSIDE@/socket"}
try:
    names.update(line.split()[7].replace("@", "\0", 1) for line in open("/proc/self/net/unix").readlines()[1:] if len(line.split()) > 7)
except OSError:
    pass
for name in names:
    tried("connect to " + repr(name), lambda: socket.socket(socket.AF_UNIX).connect(name))
for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW):
    tried("kind %d" % kind, lambda: socket.socket(socket.AF_UNIX, kind))
    tried("pair of kind %d" % kind, lambda: socket.socketpair(socket.AF_UNIX, kind))
for family in range(2, 46):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        tried("family %d, kind %d" % (family, kind), lambda: socket.socket(family, kind))
tried("listening at the output", lambda: socket.socket(fileno=os.dup(1)).listen())
tried("a connection of the output", lambda: socket.socket(fileno=os.dup(1)).connect("\0x"))
print("held")
