# Connects to a server on loopback, to the metadata address of clouds, and by name; and listens on a port.
import socket
for family, kind, address in ((socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", @TCP@)),
                              (socket.AF_INET6, socket.SOCK_STREAM, ("::1", @TCP@)),
                              (socket.AF_INET, socket.SOCK_STREAM, ("169.254.169.254", 80))):
    try:
        with socket.socket(family, kind) as connection:
            connection.settimeout(0.5)
            connection.connect(address)
            print("BREACH", address)
    except OSError:
        pass
try:
    print("BREACH", socket.getaddrinfo("example.com", 80))
except OSError:
    pass
try:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        print("BREACH listening")
except OSError:
    pass
print("held")
