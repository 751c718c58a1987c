"""The sandbox: a process with the usual packages imported, which forks one restricted child per execution.

It is started by the supervisor with one end of a unix socket as descriptor 3 and holds no secret: no certificate, no
answers. A program never passes through its memory (the child reads it from the socket itself), neither do output and
submission (`splice`, `sendfile`), so that nothing of one execution can be found in the heap of the next.

Frames on the socket: one byte kind, four bytes length (big endian), payload.
  to the zygote     C {config}                         once, first
                    R {request}, then the program      run; only while none runs
                    K                                  kill what runs; without effect if nothing does
  to the supervisor H {level, …} or {error}            once, ready or given up
                    S                                  the program starts now
                    O bytes                            output
                    P {cpuSeconds, memoryBytes}        progress, twice a second
                    X {status, …}                      the program is reaped, all of it is dead
                    E {submission …}, then D bytes     the submission
                    F                                  cleaned up, ready for the next
"""

import fcntl
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import termios
import time

# Only while our own files are imported is their directory on the path, and programs find none of them (a program may
# well have a module `watch`).
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, _HERE)
import landlock  # noqa: E402
import namespaces  # noqa: E402
import program  # noqa: E402
import restrict  # noqa: E402
import seccomp  # noqa: E402
import watch  # noqa: E402
from submission import open_submission  # noqa: E402

sys.path[:] = [path for path in sys.path if path != _HERE]
for _name in ("landlock", "linux", "namespaces", "program", "restrict", "seccomp", "submission", "watch"):
    del sys.modules[_name]

CONTROL = 3
START = 4  # in a child: where it says that it starts, or why it cannot
WATCH_SECONDS = 0.025
PROGRESS_SECONDS = 0.5
SCRATCH_WATCH_SECONDS = 0.25
LARGEST_FRAME = 1 << 20
LARGEST_REPORT = 4096

WARM = ("numpy", "pandas", "scipy.sparse", "scipy.stats", "joblib", "sklearn.compose", "sklearn.ensemble", "sklearn.impute",
        "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection", "sklearn.naive_bayes", "sklearn.neighbors",
        "sklearn.pipeline", "sklearn.preprocessing", "sklearn.svm", "sklearn.tree", "sklearn.feature_extraction.text",
        "sklearn.neural_network", "sklearn.decomposition")


def receive(count, descriptor=CONTROL):
    """Exactly `count` bytes from the supervisor; without a supervisor there is nothing to live for."""
    data = bytearray()
    while len(data) < count:
        part = os.read(descriptor, count - len(data))
        if not part:
            os._exit(0)
        data += part
    return bytes(data)


def receive_frame():
    kind, length = struct.unpack(">cI", receive(5))
    if length > LARGEST_FRAME:
        sys.exit("frame too large")
    return kind, receive(length)


def send(kind, payload=b""):
    data = struct.pack(">cI", kind, len(payload)) + payload
    while data:
        data = data[os.write(CONTROL, data):]


def send_json(kind, value):
    send(kind, json.dumps(value).encode())


class Zygote:
    def __init__(self, config):
        self.level = config["level"]
        self.config = config
        self.inputs = config["inputs"]
        self.count_processes = False
        self.user = None  # (uid, gid) that a child becomes; None: it stays who we are
        self.proc = "/proc"
        self.child_proc = False
        self.landlock_version = min(landlock.abi(), config.get("landlockAbi", 99)) if self.level != "none" else 0

    def enter_level(self):
        """Everything that the level needs before packages are imported. Raises OSError where it does not work."""
        if self.level == "namespaces":
            own_id = namespaces.enter()
            self._become_first_process()
            runtime = [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.path.realpath(sys.executable)),
                       os.path.dirname(os.path.abspath(__file__))]
            self.inputs = namespaces.build_root(runtime, self.inputs)
            self.proc = namespaces.PRIVATE + "/proc"
            self.own_pid_namespace = os.open(f"{self.proc}/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            self.child_proc = namespaces.can_mount_proc(self.own_pid_namespace)
            if own_id:
                self.user = (namespaces.INSIDE_ID, namespaces.INSIDE_ID)
            # RLIMIT_NPROC counts per user namespace since Linux 5.14; before, all that the user runs anywhere.
            self.count_processes = tuple(int(part) for part in os.uname().release.split(".")[:2]) >= (5, 14)
            self.space = namespaces.SPACE
            self.readable, self.writable = ["/"], [self.space, "/dev/null"]
            self.filter = seccomp.assemble(seccomp.everywhere())
            return
        if self.level == "landlock" and self.landlock_version == 0:
            raise OSError("the kernel has no Landlock (Linux >= 5.13 with CONFIG_SECURITY_LANDLOCK and lsm=landlock)")
        restrict.die_with_parent()
        self.space = self.config["space"]
        for name in ("scratch", "tmp"):
            os.makedirs(f"{self.space}/{name}", mode=0o700, exist_ok=True)
        self.runtime = [sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable))]
        if self.level == "landlock":
            self.readable = [*namespaces.SYSTEM, *namespaces.CONFIGURATION, *self.runtime, "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"]
            self.writable = [f"{self.space}/scratch", f"{self.space}/tmp", "/dev/null"]
            self.filter = seccomp.assemble(seccomp.everywhere() + seccomp.alone())
        if os.getuid() == 0 and self._nobody_reaches([*self.runtime, self.space, *self.inputs.values()]):
            self.user = (namespaces.OUTSIDE_ID, namespaces.OUTSIDE_ID)
            for name in ("scratch", "tmp"):
                os.chown(f"{self.space}/{name}", *self.user)

    def _become_first_process(self):
        """Goes on in a child, process 1 of the new PID namespace; we only wait, and pass on how it ended."""
        pid = os.fork()
        if pid == 0:
            restrict.die_with_parent()
            return
        restrict.die_with_parent()
        os.close(CONTROL)
        _, status = os.waitpid(pid, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)

    def _nobody_reaches(self, paths):
        """Whether an unprivileged user could read all of `paths`; tried, in a child."""
        pid = os.fork()
        if pid == 0:
            try:
                restrict.become(namespaces.OUTSIDE_ID, namespaces.OUTSIDE_ID)
                os._exit(0 if all(os.access(path, os.R_OK | os.X_OK) or path == self.space and os.access(path, os.X_OK) for path in paths) else 1)
            finally:
                os._exit(1)
        return os.waitpid(pid, 0)[1] == 0

    def warm_up(self):
        """Imports what programs use most, once for all of them."""
        # No pool of threads may exist when we fork; a child gets its own number of them.
        os.environ.update(program.environment("/", "/tmp", 1))
        if self.level == "landlock":
            os.environ["JOBLIB_MULTIPROCESSING"] = "0"  # read when joblib is imported: there are no other processes
        versions = {"python": ".".join(map(str, sys.version_info[:3]))}
        for name in self.config.get("warm", WARM):
            try:
                __import__(name)
            except ImportError:
                continue  # an environment without it: a program that needs it fails by itself
        for name in ("numpy", "pandas", "sklearn", "scipy"):
            if name in sys.modules:
                versions[name] = sys.modules[name].__version__
        gc.collect()
        gc.freeze()  # else the first collection in a child copies every page
        gc.disable()
        self.inherited_bytes = watch.inherited_bytes(self.proc)
        return versions

    def serve(self):
        while True:
            kind, payload = receive_frame()
            if kind == b"R":
                self.execute(json.loads(payload))
            elif kind != b"K":
                sys.exit(f"unexpected frame {kind!r}")

    def execute(self, request):
        execution = Execution(self, request, watch.own_bytes(self.proc)[0], self.inherited_bytes)
        execution.start()
        execution.follow()
        execution.hand_in()
        self.clean_up()
        send(b"F")

    def clean_up(self):
        """With namespaces there is nothing to do: the tmpfs is gone with its last descriptor."""
        if self.level == "namespaces":
            return
        for name in ("scratch", "tmp"):
            directory = os.open(f"{self.space}/{name}", os.O_RDONLY | os.O_DIRECTORY)
            try:
                watch.empty(directory)
            finally:
                os.close(directory)


class Execution:
    def __init__(self, zygote, request, address_space_bytes, inherited_bytes):
        self.zygote = zygote
        self.address_space_bytes = address_space_bytes
        self.request = request
        self.limits = request["limits"]
        self.inherited_bytes = inherited_bytes
        self.peak_bytes = 0
        self.killed_for = None

    def start(self):
        """Forks the child and waits until it says that it is restricted and about to run the program."""
        zygote = self.zygote
        self.output, output_write = os.pipe()
        self.report, report_write = os.pipe()
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = namespaces.fork(zygote.own_pid_namespace) if zygote.level == "namespaces" else os.fork()
        if self.pid == 0:
            try:
                source, scratch = self.become_child(output_write, report_write, theirs.detach())
            except BaseException as error:
                os.write(START, f"!{type(error).__name__}: {error}".encode()[:500])
                os._exit(126)
            os.close(START)
            os._exit(program.run(source))
        os.close(output_write)
        os.close(report_write)
        theirs.close()
        message, descriptors, _, _ = socket.recv_fds(ours, 600, 1)
        ours.close()
        if not message or message.startswith(b"!"):
            os.waitpid(self.pid, 0)
            # The child may have left part of the program on the socket: nothing can be read from it any more.
            send_json(b"H", {"error": (message[1:] or b"the child died while it was set up").decode("utf-8", "replace")})
            sys.exit(1)
        self.scratch = descriptors[0]
        self.watched_pid = int(message)
        self.pidfd = os.pidfd_open(self.pid)
        send(b"S")

    def become_child(self, output, report, start):
        """The order matters: each step takes away what the ones before needed. Returns (program, scratch)."""
        zygote, limits = self.zygote, self.limits
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        control = os.dup(CONTROL)
        # Above the descriptors that get filled, so that none is overwritten before it is moved.
        moved = [os.dup2(descriptor, 100 + index) for index, descriptor in enumerate((null, output, output, report, start, control))]
        for index, descriptor in enumerate(moved):
            os.dup2(descriptor, index, inheritable=index < START)
        os.closerange(START + 2, 65536)
        source = receive(self.request["programBytes"], START + 1)
        os.close(START + 1)
        os.environ.clear()
        restrict.die_with_parent()
        watched_pid = os.readlink(zygote.proc + "/self")

        input_place = zygote.inputs.get(self.request["task"])
        space = zygote.space
        if zygote.level == "namespaces":
            namespaces.isolate(input_place, limits["scratchBytes"], limits["scratchFiles"], zygote.child_proc)
        elif input_place:
            os.symlink(os.path.abspath(input_place), f"{space}/scratch/input")
        scratch, temporary = f"{space}/scratch", f"{space}/tmp"
        os.chdir(scratch)
        descriptor = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.environ.update(program.environment(scratch, temporary, zygote.config["cpusPerSlot"]))
        program.open_streams()

        restrict.limit_resources(limits, self.address_space_bytes, zygote.count_processes)
        if zygote.level != "none":
            if zygote.user:
                restrict.become(*zygote.user)
            restrict.drop_privileges()
            readable = zygote.readable if zygote.level == "namespaces" or not input_place else [*zygote.readable, input_place]
            restrict.confine(zygote.landlock_version, readable, zygote.writable, zygote.filter)
        program.reseed(self.request["seed"])
        limit_threads(zygote.config["cpusPerSlot"])
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with socket.socket(fileno=os.dup(START)) as channel:
            socket.send_fds(channel, [watched_pid.encode()], [descriptor])
        os.close(descriptor)
        return source, scratch

    def follow(self):
        """Passes on output and watches limits until the program is dead and reaped."""
        poll = select.poll()
        for descriptor in (self.output, self.pidfd, CONTROL):
            poll.register(descriptor, select.POLLIN)
        started = last_progress = last_scratch = time.monotonic()
        open_output = True
        while True:
            ready = dict(poll.poll(WATCH_SECONDS * 1000))
            if self.output in ready and not self.pass_on_output():
                poll.unregister(self.output)
                open_output = False
            if CONTROL in ready:
                kind, _ = receive_frame()
                if kind == b"K":
                    self.kill()
            if self.pidfd in ready:
                break
            now = time.monotonic()
            memory, tasks, cpu_seconds = watch.usage(self.zygote.proc, self.watched_pid, self.inherited_bytes)
            self.peak_bytes = max(self.peak_bytes, memory)
            if memory > self.limits["memoryBytes"]:
                self.kill("memory")
            elif tasks > self.limits["processes"] + 1:
                self.kill("processes")
            if self.zygote.level != "namespaces" and now - last_scratch >= SCRATCH_WATCH_SECONDS:
                files, bytes_ = watch.files_below(self.scratch, self.limits["scratchFiles"])
                if files > self.limits["scratchFiles"] or bytes_ > self.limits["scratchBytes"]:
                    self.kill("scratch")
                last_scratch = time.monotonic()
            if now - last_progress >= PROGRESS_SECONDS:
                send_json(b"P", {"cpuSeconds": cpu_seconds, "memoryBytes": memory})
                last_progress = now
        _, status, used = os.wait4(self.pid, 0)
        if self.zygote.level == "none":
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        code = os.waitstatus_to_exitcode(status)
        peak_bytes = max(self.peak_bytes, used.ru_maxrss * 1024 - self.inherited_bytes)
        self.reaped = {
            "status": max(code, 0), "signal": max(-code, 0), "cpuSeconds": used.ru_utime + used.ru_stime,
            "peakMemoryBytes": max(peak_bytes, 0), "killedFor": self.killed_for, "seconds": time.monotonic() - started,
        }
        os.set_blocking(self.report, False)
        try:
            self.reaped["report"] = os.read(self.report, LARGEST_REPORT).decode("utf-8", "replace")
        except BlockingIOError:
            self.reaped["report"] = ""
        send_json(b"X", self.reaped)
        while open_output and self.pass_on_output():
            pass

    def kill(self, reason=None):
        """SIGKILL, at once: nothing else is worth trying on a program that may ignore it. In a PID namespace the
        kernel kills everything with its first process."""
        self.killed_for = self.killed_for or reason
        signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def pass_on_output(self):
        """Moves what the pipe holds to the supervisor. False at its end, or once a dead program's pipe is empty."""
        count = struct.unpack("i", fcntl.ioctl(self.output, termios.FIONREAD, b"\0\0\0\0"))[0]
        if count == 0:
            return False
        count = min(count, LARGEST_FRAME)
        os.write(CONTROL, struct.pack(">cI", b"O", count))
        while count > 0:
            count -= os.splice(self.output, CONTROL, count)
        return True

    def hand_in(self):
        """The submission, as it is: it is read and judged by others."""
        descriptor, bytes_, refused = open_submission(self.scratch, self.limits["submissionBytes"])
        send_json(b"E", {"bytes": bytes_, "refused": refused, "present": descriptor is not None})
        if descriptor is not None:
            offset = 0
            while offset < bytes_:
                count = min(bytes_ - offset, LARGEST_FRAME)
                os.write(CONTROL, struct.pack(">cI", b"D", count))
                while count > 0:
                    sent = os.sendfile(CONTROL, descriptor, offset, count)
                    if sent == 0:
                        sys.exit("the submission shrank while it was read")
                    offset += sent
                    count -= sent
            os.close(descriptor)
        for descriptor in (self.output, self.report, self.pidfd, self.scratch):
            os.close(descriptor)


def limit_threads(cpus):
    """Thread pools that were made in the zygote have one thread; environment variables come too late for them."""
    if cpus > 1 and "threadpoolctl" in sys.modules:
        sys.modules["threadpoolctl"].threadpool_limits(cpus)


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the supervisor, by SIGKILL or the end of its socket
    kind, payload = receive_frame()
    if kind != b"C":
        sys.exit("the configuration has to come first")
    zygote = Zygote(json.loads(payload))
    if zygote.config["cpus"]:
        os.sched_setaffinity(0, zygote.config["cpus"])
    try:
        zygote.enter_level()
    except OSError as error:
        send_json(b"H", {"error": str(error)})
        sys.exit(1)
    versions = zygote.warm_up()
    send_json(b"H", {
        "level": zygote.level, "landlockAbi": zygote.landlock_version, "ownUser": zygote.user is not None,
        "procMounted": zygote.child_proc, "processesCounted": zygote.count_processes, "versions": versions,
        "residentBytes": watch.own_bytes(zygote.proc)[1],
    })
    zygote.serve()


if __name__ == "__main__":
    main()
