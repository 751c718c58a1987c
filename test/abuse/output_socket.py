# Uses features of a socket on its output that a pipe lacks: sends descriptors and urgent bytes, asks for the peer, shuts it down.
import array, os, socket
output = socket.socket(fileno=os.dup(1))
def tried(what, action):
    try:
        action()
        os.write(1, b"BREACH " + what.encode() + b"\n")
    except OSError:
        pass
tried("sendmsg", lambda: output.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 100))]))
tried("urgent bytes", lambda: output.send(b"x", socket.MSG_OOB))
tried("urgent bytes read", lambda: output.recv(1, socket.MSG_OOB))
tried("SO_PEERCRED", lambda: output.getsockopt(socket.SOL_SOCKET, 17, 12))
tried("SO_PEERPIDFD", lambda: output.getsockopt(socket.SOL_SOCKET, 77, 4))
tried("SO_PEERGROUPS", lambda: output.getsockopt(socket.SOL_SOCKET, 59, 400))
tried("SO_SNDBUF", lambda: output.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 100 << 20))
tried("SO_PASSCRED", lambda: output.setsockopt(socket.SOL_SOCKET, 16, 1))
tried("reading without waiting", lambda: output.recv(1, socket.MSG_DONTWAIT))
print("held")
