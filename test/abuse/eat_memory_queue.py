# Memory in connections that nobody accepts: no process has a descriptor of such a socket, and each holds what its client sent.
import os, socket
try:
    for number in range(16):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("%s/%d" % (os.environ["TMPDIR"], number))
        listener.listen(4096)
        globals()["kept%d" % number] = listener
        for _ in range(120):
            client = socket.socket(socket.AF_UNIX)
            client.setblocking(False)
            client.connect("%s/%d" % (os.environ["TMPDIR"], number))
            try:
                while True:
                    client.send(b"x" * 65536)
            except BlockingIOError:
                client.close()
    import time
    time.sleep(2)
except PermissionError:
    print("held")
