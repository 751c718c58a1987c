"""The process that the slots of one machine share: it has imported the packages and is forked for each slot.

The supervisor starts it and connects to its socket once for each sandbox. A fork of it runs `zygote.py` for one slot. So slots share the
memory of imported modules, and a new slot starts at once. In a pod each slot is a container, and listen.py does this.

The process is out of programs' reach: it runs none, reads no byte from a connection, and is in none of a fork's namespaces. Only its parent
can connect, whatever the file permissions are, because the kernel names the peer. A fork has its own connection and no other.
Not covered: what packages do while they are imported, as the supervisor's user and outside of a sandbox (warm.py).
"""

import os
import select
import signal
import socket
import struct
import sys

import restrict
from protocol import CONTROL

READY = 1  # descriptor on which one byte says that connections are accepted
_CREDENTIALS = struct.Struct("3i")  # struct ucred: process, user, group


def prepare():
    """Prepares the process before any import: it ends with the supervisor, and ignores signals that a terminal sends to all processes."""
    restrict.die_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def serve(path, serve_fork):
    """Accepts connections at `path` for ever. `serve_fork()` serves the supervisor at descriptor CONTROL and ends its process. The
    supervisor first reads this process's number there (4 bytes, big endian)."""
    listener = _listen(path)
    os.write(READY, b"\n")
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, READY)
    os.close(null)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    forks = {}  # by both descriptors: (process, its pidfd, its connection)
    while True:
        descriptor, _ = poll.poll()[0]
        if descriptor == listener.fileno():
            connection = _accept(listener)
            if connection is None:
                continue
            try:
                pid = os.fork()
            except OSError as error:
                print(f"no fork for another slot: {error}", file=sys.stderr, flush=True)
                os.close(connection)
                continue
            if pid == 0:
                listener.detach()  # from now on the number may belong to another descriptor
                _keep_only(connection)
                serve_fork()
                os._exit(0)
            started = (pid, os.pidfd_open(pid), connection)
            forks[started[1]] = forks[connection] = started
            poll.register(started[1], select.POLLIN)
            poll.register(connection, 0)  # poll reports a hang-up without a flag; readable data belongs to the forked program
        else:
            pid, ended, connection = forks[descriptor]
            if descriptor == connection:
                signal.pidfd_send_signal(ended, signal.SIGKILL)  # it may not notice that its supervisor is gone
            os.waitpid(pid, 0)
            for each in (ended, connection):
                poll.unregister(each)
                os.close(each)  # the last descriptor of the connection: the supervisor sees its end once the fork is dead
                del forks[each]


def _listen(path):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    os.chmod(path, 0o600)
    listener.listen(64)
    return listener


def _accept(listener):
    """Returns a descriptor of the next connection, or None if the peer is not this process's parent."""
    connection, _ = listener.accept()
    pid, _, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if pid != os.getppid():
        connection.close()
        return None
    return connection.detach()


def _keep_only(connection):
    """In the fork: keeps only the standard descriptors and the connection, and makes the fork end with its new parent."""
    restrict.die_with_parent()
    os.dup2(connection, CONTROL)
    os.closerange(CONTROL + 1, 65536)
    os.write(CONTROL, struct.pack(">I", os.getpid()))
