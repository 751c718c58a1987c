"""One child of the zygote. It is forked and restricted before there is a program, then waits for a request and runs the program.

While a program runs, the zygote makes the next child for the same task and limits of memory and scratch. So an execution does not wait for
a fork, new namespaces or a tmpfs. If the next request is for another task, the zygote makes another child. A child runs one program only,
and its memory never held anything of another program.
"""

import json
import os
import signal
import socket
import struct
import sys

import limits
import namespaces
import program
import restrict
from protocol import CONTROL, receive

ORDERS = 4  # descriptor in the child: it receives the request and the order to begin, and sends that it is ready or why it cannot be
LARGEST_REQUEST = 64 << 10
LARGEST_ANSWER = 600
READY = b"+"


class Child:
    """The zygote's side: the child and the connections to it."""

    def __init__(self, zygote, place):
        self.place = place
        # Not a pipe: a process with the zygote's uid can reopen a pipe by /proc/self/fd and take back what it wrote.
        self.output, output = (end.detach() for end in socket.socketpair())
        self.report, report = os.pipe()
        self.orders, orders = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.address_space_bytes = zygote.address_space_bytes()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = namespaces.fork(zygote.own_pid_namespace) if zygote.level == "namespaces" else os.fork()
        if self.pid == 0:
            try:
                runs = _become(zygote, place, self.address_space_bytes, output, report, orders.detach())
            except BaseException as error:
                os.write(ORDERS, f"!{type(error).__name__}: {error}".encode()[:500])
                os._exit(126)
            if not os.read(ORDERS, 1):
                os._exit(0)  # the zygote ended
            os.close(ORDERS)
            try:
                runs.run()
            finally:  # after an error of the runner itself (no memory is left) this process must not continue as a zygote
                os._exit(1)
        os.close(output)
        os.close(report)
        orders.close()
        self.pidfd = os.pidfd_open(self.pid)

    def discard(self):
        """Ends a child that was not started."""
        self.orders.close()
        os.waitpid(self.pid, 0)
        for descriptor in (self.output, self.report, self.pidfd):
            os.close(descriptor)

    def start(self, request):
        """Gives the child the program that comes next on the supervisor's socket. Returns (the child's pid in the zygote's /proc, a
        descriptor of its scratch directory) once it is restricted and waits for `begin`. Raises OSError."""
        try:
            self.orders.send(json.dumps(request).encode())
        except BrokenPipeError:
            pass  # it reported the reason before it died
        message, descriptors, _, _ = socket.recv_fds(self.orders, LARGEST_ANSWER, 1)
        said = self.orders.recv(LARGEST_ANSWER) if descriptors else message
        if said != READY:
            os.waitpid(self.pid, 0)
            for descriptor in descriptors:
                os.close(descriptor)
            raise OSError((said[1:] or b"the child died while it was set up").decode("utf-8", "replace"))
        return int(message), descriptors[0]

    def begin(self):
        """Lets the program run. The caller has announced the start before, because on a busy processor the program could end before this
        process runs again."""
        with self.orders:
            try:
                self.orders.send(b"b")
            except BrokenPipeError:
                pass  # it died, and will be reaped


def place_of(request):
    """Returns the parts of a request that a child is made for."""
    asked = request["limits"]
    return request["task"], asked["memoryBytes"], asked["scratchBytes"], asked["scratchFiles"]


def _become(zygote, place, address_space_bytes, output, report, orders):
    """Restricts the child and returns the Program. The order matters: each step takes away what earlier steps needed."""
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    control = os.dup(CONTROL)
    # Numbers above the final ones, so that no descriptor is overwritten before it is moved.
    moved = [os.dup2(descriptor, 100 + index) for index, descriptor in enumerate((null, output, output, report, orders, control))]
    for index, descriptor in enumerate(moved):
        os.dup2(descriptor, index, inheritable=index < ORDERS)
    os.closerange(ORDERS + 2, 65536)
    restrict.die_with_parent()
    watched_pid = os.readlink(zygote.proc + "/self")
    limits.prefer_as_victim(zygote.proc)
    if zygote.level == "namespaces":
        namespaces.isolate(zygote.child_proc)
        _move_in(zygote, watched_pid, *place)

    message = os.read(ORDERS, LARGEST_REQUEST)
    if not message:
        os._exit(0)  # the zygote ended, or gave the request to another child
    if zygote.level != "namespaces":
        _move_in(zygote, watched_pid, *place)  # the scratch directory may still be another program's until now
    request = json.loads(message)
    nonce, text = receive(request["nonceBytes"], ORDERS + 1), receive(request["programBytes"], ORDERS + 1)
    os.close(ORDERS + 1)
    runs = program.Program(text, nonce)
    limits.set_rlimits(request["limits"], None if zygote.devices else address_space_bytes, zygote.count_processes)
    program.reseed(request["seed"])
    os.write(ORDERS, READY)
    return runs


def _move_in(zygote, watched_pid, task, memory_bytes, scratch_bytes, scratch_files):
    """Enters the scratch directory and leaves everything that is not the program's. Sends the zygote this process's pid in the zygote's
    /proc and a descriptor of the directory, which a restricted process could not send."""
    input_place = zygote.inputs.get(task)
    space = zygote.space
    if zygote.level == "namespaces":
        namespaces.furnish(input_place, memory_bytes if zygote.child_proc else None, scratch_bytes, scratch_files)
    elif input_place:
        os.symlink(os.path.abspath(input_place), f"{space}/scratch/input")
    scratch = f"{space}/scratch"
    os.chdir(scratch)
    descriptor = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    # Not `send_fds` and socket.socket: their layers take each child a third of a millisecond.
    channel = socket.SocketType(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, ORDERS)
    channel.sendmsg([watched_pid.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", descriptor))])
    channel.detach()
    os.close(descriptor)
    program.open_streams()

    if zygote.level != "none":
        if zygote.user:
            restrict.become(*zygote.user)
        restrict.drop_privileges()
        readable = zygote.readable if zygote.level == "namespaces" or not input_place else [*zygote.readable, input_place]
        restrict.confine(zygote.landlock_version, readable, zygote.writable, zygote.devices, zygote.filter)
    _limit_threads(zygote.config["cpusPerSlot"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _limit_threads(cpus):
    """Sets the number of threads of thread pools that the zygote made, which have one thread. Environment variables would have no effect on
    them."""
    if cpus > 1 and "threadpoolctl" in sys.modules:
        sys.modules["threadpoolctl"].threadpool_limits(cpus)
