"""A zygote to which supervisors connect: process 1 of a sandbox container. A pod has one such container for each slot.

The process imports the packages once and then serves one connection after another. A fork of it serves each connection, as `zygote.py` does
on one machine. So a fork starts in milliseconds and sees no change that an earlier fork made. The process itself reads no byte from the
socket. It notices when the supervisor hangs up, even if the fork does not, kills all remaining processes, empties the scratch directory,
and reaps orphans as process 1.

The socket exists only while nothing runs: it is removed before a fork starts, and is made again when all the fork's processes are dead and
its files are gone. So a program finds no socket, even if Landlock and seccomp failed, which forbid it to connect, bind, or touch that
directory.
"""

import os
import select
import signal
import socket
import sys

import restrict
import watch
from linux import PR_SET_CHILD_SUBREAPER, prctl
from protocol import CONTROL

REAP_SECONDS = 1
# The same environment as the supervisor gives to a zygote that it starts. A fixed hash seed: a program's sets have the same order in every
# zygote.
ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}


def prepare():
    """Prepares the process before any import: it ends at once on a signal, and has no variable of the container's environment."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))  # process 1 has no default action; when it ends, the container ends
    if dict(os.environ) != ENVIRONMENT:
        os.execve(sys.executable, [sys.executable, "-s", "-B", *sys.argv], ENVIRONMENT)
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # process 1 is one anyway


def serve(path, scratch, serve_fork):
    """Listens at `path` for ever. `serve_fork()` serves the supervisor at descriptor CONTROL and ends its process."""
    while True:
        _empty(scratch)
        connection = _accept(path)
        pid = os.fork()
        if pid == 0:
            restrict.die_with_parent()
            descriptor = connection.detach()
            if descriptor != CONTROL:
                os.dup2(descriptor, CONTROL)
                os.close(descriptor)
            serve_fork()
            os._exit(0)
        with connection:
            ended = os.pidfd_open(pid)
            # poll() reports a hang-up even with an empty event mask. Only the fork reads the connection's input.
            _wait_for({ended: select.POLLIN, connection.fileno(): 0}, besides=pid)
            os.close(ended)
            _kill_everything()


def begin_anew(option):
    """Starts this process anew with this option added."""
    os.execve(sys.executable, [sys.executable, "-s", "-B", *sys.argv, option], ENVIRONMENT)


def _accept(path):
    """Returns the next connection to `path`. The socket exists only until then."""
    unready = path + ".new"
    for stale in (path, unready):
        if os.path.lexists(stale):
            os.unlink(stale)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(unready)
        try:  # the supervisor is another user, but it belongs to the volume's group
            os.chown(unready, -1, os.stat(os.path.dirname(path)).st_gid)
        except PermissionError:
            pass  # not in that group: only this user can connect
        os.chmod(unready, 0o660)
        listener.listen(1)
        os.rename(unready, path)
        _wait_for({listener.fileno(): select.POLLIN})
        connection, _ = listener.accept()
        os.unlink(path)
    return connection


def _wait_for(descriptors, besides=0):
    """Waits until one of `descriptors` (with the events to wait for) is ready. Reaps orphans meanwhile, except `besides`."""
    poll = select.poll()
    for descriptor, events in descriptors.items():
        poll.register(descriptor, events)
    while not poll.poll(REAP_SECONDS * 1000):
        try:
            while (found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and found.si_pid != besides:
                os.waitpid(found.si_pid, 0)
        except ChildProcessError:
            pass


def _kill_everything():
    """Kills all other processes (outside of a container: all descendants). Returns when they are gone."""
    while True:
        try:
            for pid in (-1,) if os.getpid() == 1 else _children():
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # there was none
        try:
            os.wait()  # orphans of killed processes are now children of this process
        except ChildProcessError:
            return


def _children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]


def _empty(scratch):
    directory = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY)
    try:
        watch.empty(directory)
    finally:
        os.close(directory)
