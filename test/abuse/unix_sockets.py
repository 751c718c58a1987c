# Unix sockets: abstract names cross mount namespaces, paths reach services of the machine, and a pair of datagram sockets can still send to
# any name.
import socket
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    for address in ("\0@ABSTRACT@", "@OUTSIDE@/socket", "/var/run/docker.sock", "/run/systemd/notify"):
        try:
            with socket.socket(socket.AF_UNIX, kind) as connection:
                connection.connect(address)
                connection.send(b"secret")
                print("BREACH", address)
        except OSError:
            pass
try:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"secret", "\0@ABSTRACT@")
    print("BREACH datagram pair")
except OSError:
    pass
print("held")
