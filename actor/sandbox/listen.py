"""A zygote that supervisors connect to: process 1 of a sandbox container, of which a pod has one for each slot.

It imports the packages once and then serves one connection after another. Each is served by a fork of it,
which is what `zygote.py` is elsewhere; so a fork starts in milliseconds and finds nothing that another one changed.
This process reads not a byte of what comes over the socket. It sees that the supervisor hung up also where the fork
does not, kills all that is left, empties the scratch directory, and reaps whatever process 1 is given to reap.

The socket is there only while nothing runs: it is taken away before a fork starts and comes back when everything of
the fork is dead and its files are gone. So a program finds nothing to connect to, even where Landlock and seccomp,
which forbid it to connect, bind, or touch that directory, did not hold.
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
# As the supervisor gives it to a zygote that it starts itself. A hash seed that never changes: a program's sets iterate
# alike whichever zygote it meets.
ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}


def prepare():
    """Before anything is imported: ends at once when told to, and has nothing of the container's environment."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))  # process 1 has no default; its end ends the container
    if dict(os.environ) != ENVIRONMENT:
        os.execve(sys.executable, [sys.executable, "-s", "-B", *sys.argv], ENVIRONMENT)
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # what process 1 is anyway


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
            # poll() reports a hang-up even with an empty event mask. Input on the connection is for the fork alone.
            _wait_for({ended: select.POLLIN, connection.fileno(): 0}, besides=pid)
            os.close(ended)
            _kill_everything()


def begin_anew(option):
    """The same process, as it was started and with this option."""
    os.execve(sys.executable, [sys.executable, "-s", "-B", *sys.argv, option], ENVIRONMENT)


def _accept(path):
    """The next connection to `path`, where there is a socket only until then."""
    unready = path + ".new"
    for stale in (path, unready):
        if os.path.lexists(stale):
            os.unlink(stale)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(unready)
        try:  # the volume's group, which the supervisor is in as well; it has another user
            os.chown(unready, -1, os.stat(os.path.dirname(path)).st_gid)
        except PermissionError:
            pass  # not in that group: only our own user can connect
        os.chmod(unready, 0o660)
        listener.listen(1)
        os.rename(unready, path)
        _wait_for({listener.fileno(): select.POLLIN})
        connection, _ = listener.accept()
        os.unlink(path)
    return connection


def _wait_for(descriptors, besides=0):
    """Until one of `descriptors` (with the events to wait for) is ready; reaps orphans meanwhile, `besides` not."""
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
    """All processes but this one; returns when they are gone. Outside of a container, those below us."""
    while True:
        try:
            for pid in (-1,) if os.getpid() == 1 else _children():
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # there was none
        try:
            os.wait()  # and what has lost its parent by that is our child now
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
