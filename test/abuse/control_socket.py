# Attacks the socket between supervisor and sandbox: connects to it, removes it, replaces it, or links to another slot's socket.
import os, socket
path = "@CONTROL@"
def connect(where):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(where)
def listen(where):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(where)
actions = (lambda: connect(path), lambda: listen(path), lambda: listen(path + ".new"), lambda: os.unlink(path),
           lambda: os.rename(path, "mine"), lambda: os.symlink("/dev/null", path), lambda: open(path, "w"),
           lambda: os.mkdir(path), lambda: os.mkfifo(path), lambda: os.listdir(os.path.dirname(path)),
           lambda: os.rename(os.path.dirname(path), os.path.dirname(path) + "-moved"), lambda: os.unlink(path + ".new"))
for index, action in enumerate(actions):
    try:
        action()
        print("BREACH", index)
    except OSError:
        pass
# Descriptors that were left open by mistake: the listening socket, a connection, a file of the sandbox.
for descriptor in range(3, 1024):
    try:
        kind = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        try:
            os.fstat(descriptor)
            kind = "open"
        except OSError:
            continue
    if descriptor != 3:  # the runner reports the exception that ended the program there
        print("BREACH", descriptor, kind)
print("held")
