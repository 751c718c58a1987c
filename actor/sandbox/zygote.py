"""The sandbox: a process with the usual packages imported, which forks one restricted child per execution.

The sandbox is a fork of a process that imports the packages and has the socket to which the supervisor connects. On one machine the
supervisor starts that process for all its slots, `zygote.py --fork-server SOCKET …` (forkserver.py); in a pod it is the first process of
each slot's container, `zygote.py --listen SOCKET …` (listen.py).

It holds no secret: no certificate, no answers. A program never passes through its memory (the child reads it from the socket), nor do
output and submission (`splice`, `sendfile`), so the heap of one execution holds nothing of another.

protocol.py describes the socket's messages, restrict.py what a program must not have, limits.py how much it may use.
Covered here: a program's memory, descriptors, files, processes, imported modules and random numbers do not affect the next program, because
each runs in a fork of a process that never ran a program. Not covered: imported modules have the same addresses in every fork, which helps
to exploit a fault of the interpreter; but the program controls its interpreter anyway.
"""

import json
import os
import signal
import sys

# The sandbox's directory is on the path only while its own files are imported, so that a program may have a module `watch` of its own.
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, _HERE)
import cgroup  # noqa: E402
import forkserver  # noqa: E402
import gpu  # noqa: E402
import landlock  # noqa: E402
import listen  # noqa: E402
import memory  # noqa: E402
import namespaces  # noqa: E402
import output  # noqa: E402
import procfs  # noqa: E402
import program  # noqa: E402
import restrict  # noqa: E402
import seccomp  # noqa: E402
import warm  # noqa: E402
import watch  # noqa: E402
from child import Child, place_of  # noqa: E402
from execution import Execution  # noqa: E402
from protocol import CONTROL, receive_frame, send, send_json  # noqa: E402

sys.path[:] = [path for path in sys.path if path != _HERE]
for _name in ("cgroup", "channel", "child", "execution", "forkserver", "gpu", "landlock", "limits", "linux", "listen", "markers", "memory", "namespaces", "output", "procfs", "program", "protocol",
              "restrict", "scratch", "seccomp", "submission", "system_calls", "warm", "watch"):
    del sys.modules[_name]

SMALLEST_MEMORY_BYTES = 64 << 20  # a container with a lower limit is a mistake


class Zygote:
    def __init__(self, config):
        self.level = config["level"]
        self.config = config
        self.inputs = config["inputs"]
        self.count_processes = False
        self.user = None  # (uid, gid) that a child becomes; None: it keeps this user
        self.proc = "/proc"
        self.child_proc = False
        self.next_child = None
        self.output_buffer = output.make_buffer()
        self.memory_bytes = None  # most memory of a program, whatever its limits say
        self.landlock_version = min(landlock.abi(), config.get("landlockAbi", 99)) if self.level != "none" else 0

    def enter_level(self):
        """Enters an environment in which this level can restrict programs. Raises OSError if that does not work."""
        self.gpus = gpu.find(self.config.get("gpus", []), **self.config.get("gpuPlaces", {}))
        self.devices = self.gpus.files
        if self.level == "namespaces":
            own_id = namespaces.enter()
            self._become_first_process()
            runtime = [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.path.realpath(sys.executable)),
                       os.path.dirname(os.path.abspath(__file__))]
            self.inputs = namespaces.build_root(runtime, self.inputs, self.devices)
            self.devices = [f"/dev/{os.path.basename(path)}" for path in self.devices]
            self.proc = namespaces.PRIVATE + "/proc"
            self.own_pid_namespace = os.open(f"{self.proc}/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            self.child_proc = namespaces.can_mount_proc(self.own_pid_namespace)
            if own_id:
                self.user = (namespaces.INSIDE_ID, namespaces.INSIDE_ID)
            # RLIMIT_NPROC counts per user namespace since Linux 5.14; before, it counts all the user's processes on the machine.
            self.count_processes = tuple(int(part) for part in os.uname().release.split(".")[:2]) >= (5, 14)
            self.space = namespaces.SPACE
            self.readable, self.writable = ["/"], [self.space, "/dev/null"]
            self.filter = seccomp.assemble(seccomp.everywhere(bool(self.devices)))
            return
        if self.level == "landlock" and self.landlock_version == 0:
            raise OSError("the kernel has no Landlock (Linux >= 5.13 with CONFIG_SECURITY_LANDLOCK and lsm=landlock)")
        restrict.die_with_parent()
        self.space = self.config["space"]
        for name in ("scratch", "tmp"):
            os.makedirs(f"{self.space}/{name}", mode=0o700, exist_ok=True)
        self.runtime = [sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable))]
        if self.level == "landlock":
            # The files of /proc that libraries read: loaded libraries (threadpoolctl, and so KMeans), processors and memory (psutil). "self"
            # is the child that is restricted.
            own = [f"/proc/self/{name}" for name in ("maps", "status", "stat", "statm")]
            machine = [*(f"/proc/{name}" for name in ("cpuinfo", "meminfo", "stat", *procfs.OPEN)), "/sys/devices/system/cpu"]
            devices = [f"/dev/{name}" for name in ("zero", "full", "random", "urandom")]
            self.readable = [*namespaces.SYSTEM, *namespaces.CONFIGURATION, *self.runtime, *devices, *own, *machine]
            if self.devices:
                self.readable.append(gpu.DRIVER)
            self.writable = [f"{self.space}/scratch", f"{self.space}/tmp", "/dev/null"]
            self.filter = seccomp.assemble(seccomp.alone(bool(self.devices)))
        self.clean_up()
        if os.getuid() == 0 and self._nobody_reaches([*self.runtime, self.space, *self.inputs.values()]):
            self.user = (namespaces.OUTSIDE_ID, namespaces.OUTSIDE_ID)
            for name in ("scratch", "tmp"):
                os.chown(f"{self.space}/{name}", *self.user)

    def _become_first_process(self):
        """Continues in a child, process 1 of the new PID namespace. The parent waits and passes on the exit status."""
        pid = os.fork()
        if pid == 0:
            restrict.die_with_parent()
            return
        restrict.die_with_parent()
        os.close(CONTROL)
        _, status = os.waitpid(pid, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)

    def _nobody_reaches(self, paths):
        """Returns whether an unprivileged user could read all of `paths`. Tries it in a child."""
        pid = os.fork()
        if pid == 0:
            try:
                restrict.become(namespaces.OUTSIDE_ID, namespaces.OUTSIDE_ID)
                os._exit(0 if all(os.access(path, os.R_OK | os.X_OK) or path == self.space and os.access(path, os.X_OK) for path in paths) else 1)
            finally:
                os._exit(1)
        return os.waitpid(pid, 0)[1] == 0

    def stay_below(self, container):
        """Sets a memory limit that kills programs before they fill the container, which would kill the zygote too. Raises OSError if the
        container is too small."""
        if container is None:
            return
        self.memory_bytes, limit = container
        if self.memory_bytes < SMALLEST_MEMORY_BYTES:
            raise OSError(f"the container's memory limit of {limit >> 20} MiB leaves programs {self.memory_bytes >> 20} MiB, "
                          f"but they need {SMALLEST_MEMORY_BYTES >> 20} MiB: raise it (spec.actors.sandboxResources)")

    def address_space_bytes(self):
        return watch.own_bytes(self.proc)[0]

    def serve(self):
        while True:
            kind, payload = receive_frame()
            if kind == b"R":
                self.execute(json.loads(payload))
            elif kind != b"K":
                sys.exit(f"unexpected frame {kind!r}")

    def execute(self, request):
        if self.memory_bytes is not None:
            request["limits"]["memoryBytes"] = min(request["limits"]["memoryBytes"], self.memory_bytes)
        place = place_of(request)
        child = self.next_child
        if child and child.place != place:
            child.discard()
            child = None
        try:
            execution = Execution(self, child or Child(self, place), request)
        except OSError as error:
            # The child may have left part of the program on the socket, so nothing more can be read from it.
            send_json(b"H", {"error": str(error)})
            sys.exit(1)
        self.next_child = Child(self, place)
        execution.follow()
        execution.hand_in()
        self.clean_up()
        send(b"F")

    def clean_up(self):
        """Cleans up. With namespaces nothing is left to do: the tmpfs ends with its last descriptor."""
        if self.level == "namespaces":
            return
        for name in ("scratch", "tmp"):
            directory = os.open(f"{self.space}/{name}", os.O_RDONLY | os.O_DIRECTORY)
            try:
                watch.empty(directory)
            finally:
                os.close(directory)


def serve_supervisor(packages, container=None):
    """Serves one supervisor, from the first frame on CONTROL to the end of the connection. `packages`: the imported packages. `container`:
    the command line's options, if this process is alone in a container."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the supervisor ends it, by SIGKILL or by closing the socket
    kind, payload = receive_frame()
    if kind != b"C":
        sys.exit("the configuration has to come first")
    config = json.loads(payload)
    if container:
        config.update(space=container.scratch, cpusPerSlot=cgroup.cpus() or 1, gpus=None)
    zygote = Zygote(config)
    if config["cpus"]:
        os.sched_setaffinity(0, config["cpus"])
    try:
        if container:  # before entering namespaces, from which the limit is not visible
            zygote.stay_below(cgroup.memory_for_programs(watch.inherited_bytes("/proc")))
        zygote.enter_level()
    except OSError as error:
        send_json(b"H", {"error": str(error)})
        sys.exit(1)
    os.environ.clear()  # from here on it is that of every child
    os.environ.update(program.environment(f"{zygote.space}/scratch", f"{zygote.space}/tmp", config["cpusPerSlot"], zygote.level == "landlock"))
    os.environ.update(zygote.gpus.environment)
    zygote.inherited_bytes = watch.inherited_bytes(zygote.proc)
    send_json(b"H", {
        "level": zygote.level, "landlockAbi": zygote.landlock_version, "ownUser": zygote.user is not None,
        "procMounted": zygote.child_proc, "processesCounted": zygote.count_processes, **packages, "packages": warm.installed_packages(),
        "residentBytes": watch.own_bytes(zygote.proc)[1], "memoryBytes": zygote.memory_bytes,
        "gpus": zygote.gpus.names, "directory": container and os.path.dirname(container.listen),
    })
    zygote.serve()


def listen_for_supervisors(arguments):
    import argparse

    parser = argparse.ArgumentParser(prog="zygote.py", description="A sandbox that a supervisor connects to.")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--listen", metavar="SOCKET", help="where to listen, as process 1 of a slot's container")
    place.add_argument("--fork-server", metavar="SOCKET", help="where to listen, for all slots of the process that starts us")
    parser.add_argument("--scratch", default="/scratch", metavar="DIR", help="emptied before and after each connection; of a fork server: for imports")
    parser.add_argument("--warm", default=",".join(warm.WARM), metavar="NAMES", help="modules to import beforehand")
    parser.add_argument("--careful", action="store_true", help="leave out modules that leave threads behind")
    parser.add_argument("--several-processes", action="store_true", help="programs can fork")
    options = parser.parse_args(arguments)
    server = listen if options.listen else forkserver
    server.prepare()
    temporary = "/tmp" if options.listen else options.scratch
    try:
        names = [name for name in options.warm.split(",") if name]
        packages = warm.import_packages(names, not options.several_processes, "/proc", temporary, options.careful)
    except warm.ThreadsLeft as error:
        if options.careful:
            sys.exit(str(error))
        listen.begin_anew("--careful")  # threads cannot be removed from a process
    memory.settle("/proc")
    if options.listen:
        listen.serve(options.listen, options.scratch, lambda: serve_supervisor(packages, options))
    forkserver.serve(options.fork_server, lambda: serve_supervisor(packages))


def main():
    try:
        listen_for_supervisors(sys.argv[1:])
    except (BrokenPipeError, ConnectionResetError):
        os._exit(0)  # the supervisor is gone


if __name__ == "__main__":
    main()
