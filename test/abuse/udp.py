# A datagram can leak as much as a connection. Also tries raw and netlink sockets.
import socket
for family, kind, address in ((socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", @UDP@)),
                              (socket.AF_INET, socket.SOCK_RAW, ("127.0.0.1", 0)),
                              (getattr(socket, "AF_NETLINK", 16), socket.SOCK_RAW, (0, 0)),
                              (getattr(socket, "AF_VSOCK", 40), socket.SOCK_STREAM, (2, 1))):
    try:
        with socket.socket(family, kind) as sender:
            sender.settimeout(0.2)
            if kind == socket.SOCK_DGRAM:
                sender.sendto(b"secret", address)
            print("BREACH", family, kind)
    except (OSError, TypeError):
        pass
print("held")
