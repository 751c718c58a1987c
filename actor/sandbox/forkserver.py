"""What the slots of one machine share: a process that has imported the packages and is forked for each slot.

The supervisor starts it and connects to its socket for each sandbox; a fork of it is what `zygote.py` is for one slot. So slots share the memory of what is imported, and a new one is there at once. In a pod, where a slot is a container,
listen.py does this.

No program comes near it: it runs none, reads not a byte of what comes over a connection, and is in none of a fork's
namespaces. Only its parent can connect, whatever the permissions of files are: the kernel tells who is at the other end. A fork
has its own connection and nothing of the others'.
Not covered: what packages do while they are imported, as the supervisor's user and in no sandbox (warm.py).
"""

import os
import select
import signal
import socket
import struct
import sys

import restrict
from protocol import CONTROL

READY = 1  # the descriptor where a byte says that connections are taken
_CREDENTIALS = struct.Struct("3i")  # struct ucred: process, user, group


def prepare():
    """Before anything is imported: it ends with the supervisor, and not by a signal that a terminal sends to everybody."""
    restrict.die_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def serve(path, serve_fork):
    """Takes connections at `path` for ever. `serve_fork()` serves the supervisor at descriptor CONTROL and ends its process, whose
    number (4 bytes, big endian) is the first that the supervisor reads there."""
    listener = _listen(path)
    os.write(READY, b"\n")
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, READY)
    os.close(null)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    forks = {}  # by both its descriptors: (process, its pidfd, its connection)
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
                listener.detach()  # its number may be another descriptor's from now on
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
                signal.pidfd_send_signal(ended, signal.SIGKILL)  # it may not see that nobody is there any more
            os.waitpid(pid, 0)
            for each in (ended, connection):
                poll.unregister(each)
                os.close(each)  # of the connection the last one: for the supervisor it ends when the fork is dead
                del forks[each]


def _listen(path):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    os.chmod(path, 0o600)
    listener.listen(64)
    return listener


def _accept(listener):
    """A descriptor of the next connection, or None if it is not our parent's."""
    connection, _ = listener.accept()
    pid, _, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if pid != os.getppid():
        connection.close()
        return None
    return connection.detach()


def _keep_only(connection):
    """In the fork: no descriptor but the standard ones and the connection; and it has another parent to end with."""
    restrict.die_with_parent()
    os.dup2(connection, CONTROL)
    os.closerange(CONTROL + 1, 65536)
    os.write(CONTROL, struct.pack(">I", os.getpid()))
