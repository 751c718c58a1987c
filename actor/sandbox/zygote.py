"""The sandbox: a process with the usual packages imported, which forks one restricted child per execution.

On one machine the supervisor starts it, with one end of a unix socket as descriptor 3. In a pod it is the first process
of a container, `zygote.py --listen SOCKET [--scratch DIR] [--warm NAMES]`, and the supervisor connects (listen.py).

It holds no secret: no certificate, no answers. A program never passes through its memory (the child reads it from the
socket itself), neither do output and submission (`splice`, `sendfile`), so that nothing of one execution can be found
in the heap of the next.

What passes over the socket is in protocol.py, what a program must not have in restrict.py, how much it may use in limits.py.
Covered here: one program's memory, descriptors, files, processes, imported modules and random numbers are nothing to the next
one, as each runs in a fork of a process that no program ever ran in. Not covered: the addresses of what was imported are the
same in every fork (no new layout for each program), which helps to exploit a fault of an interpreter that programs own anyhow.
"""

import json
import os
import re
import signal
import sys

# Only while our own files are imported is their directory on the path, and programs find none of them (a program may
# well have a module `watch`).
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, _HERE)
import cgroup  # noqa: E402
import landlock  # noqa: E402
import listen  # noqa: E402
import memory  # noqa: E402
import namespaces  # noqa: E402
import program  # noqa: E402
import restrict  # noqa: E402
import seccomp  # noqa: E402
import watch  # noqa: E402
from child import Child  # noqa: E402
from execution import Execution  # noqa: E402
from protocol import CONTROL, receive_frame, send, send_json  # noqa: E402

sys.path[:] = [path for path in sys.path if path != _HERE]
for _name in ("cgroup", "child", "execution", "landlock", "limits", "linux", "listen", "memory", "namespaces", "program", "protocol",
              "restrict", "seccomp", "submission", "watch"):
    del sys.modules[_name]

WARM = ("numpy", "pandas", "scipy.sparse", "scipy.stats", "joblib", "sklearn.compose", "sklearn.ensemble", "sklearn.impute",
        "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection", "sklearn.naive_bayes", "sklearn.neighbors",
        "sklearn.pipeline", "sklearn.preprocessing", "sklearn.svm", "sklearn.tree", "sklearn.feature_extraction.text",
        "sklearn.neural_network", "sklearn.decomposition", "torch")
SMALLEST_MEMORY_BYTES = 64 << 20  # below it a container's limit is a mistake


class Zygote:
    def __init__(self, config):
        self.level = config["level"]
        self.config = config
        self.inputs = config["inputs"]
        self.count_processes = False
        self.user = None  # (uid, gid) that a child becomes; None: it stays who we are
        self.proc = "/proc"
        self.child_proc = False
        self.memory_bytes = None  # that a program may use at most, whatever its limits say
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
            # Of /proc what libraries ask for: which of them are loaded (threadpoolctl, and KMeans with it), how many and
            # what processors, how much memory. "self" is the child that is restricted.
            own = [f"/proc/self/{name}" for name in ("maps", "status", "stat", "statm")]
            machine = ["/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"]
            devices = [f"/dev/{name}" for name in ("zero", "full", "random", "urandom")]
            self.readable = [*namespaces.SYSTEM, *namespaces.CONFIGURATION, *self.runtime, *devices, *own, *machine]
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

    def warm_up(self, versions):
        """Everything after the imports, which are made here unless their `versions` say that they have been."""
        if versions is None:
            versions = import_packages(self.config.get("warm", WARM), self.level == "landlock")
            memory.settle(self.proc)
        if self.level == "namespaces":
            namespaces.drop_import_space()
        self.inherited_bytes = watch.inherited_bytes(self.proc)
        return versions

    def stay_below(self, container):
        """Kills programs before they fill the container: its end would be ours too. Raises OSError if it is too small."""
        if container is None:
            return
        self.memory_bytes, limit = container
        if self.memory_bytes < SMALLEST_MEMORY_BYTES:
            raise OSError(f"the container's memory limit of {limit >> 20} MiB leaves programs {self.memory_bytes >> 20} MiB, "
                          f"and needs {SMALLEST_MEMORY_BYTES >> 20}: raise it (spec.actors.sandboxResources)")

    def address_space_bytes(self):
        return watch.own_bytes(self.proc)[0]

    def serve(self):
        self.next_child = Child(self)
        while True:
            kind, payload = receive_frame()
            if kind == b"R":
                self.execute(json.loads(payload))
            elif kind != b"K":
                sys.exit(f"unexpected frame {kind!r}")

    def execute(self, request):
        if self.memory_bytes is not None:
            request["limits"]["memoryBytes"] = min(request["limits"]["memoryBytes"], self.memory_bytes)
        try:
            execution = Execution(self, self.next_child, request)
        except OSError as error:
            # The child may have left part of the program on the socket: nothing can be read from it any more.
            send_json(b"H", {"error": str(error)})
            sys.exit(1)
        self.next_child = Child(self)
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


def import_packages(names, one_process):
    """Imports what programs use most, once for all of them. Returns versions. `one_process`: programs cannot fork."""
    # No pool of threads may exist when we fork; a child gets its own number of them.
    os.environ.update(program.environment("/", "/tmp", 1))
    if one_process:
        os.environ["JOBLIB_MULTIPROCESSING"] = "0"  # read when joblib is imported
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    names = list(names)
    reserved = memory.reserve() if names else None
    for name in names:
        try:
            __import__(name)
        except ImportError:
            continue  # an environment without it: a program that needs it fails by itself
    for name in ("numpy", "pandas", "sklearn", "scipy", "torch"):
        if name in sys.modules:
            versions[name] = sys.modules[name].__version__
    if "numpy" in sys.modules:
        import numpy.random  # it comes when it is first used: in each child, where random numbers are seeded (30 ms)
    if "torch" in sys.modules:
        prepare_torch(sys.modules["torch"], one_process)
    del reserved
    return versions


def prepare_torch(torch, one_process):
    """Imported here it costs programs neither its seconds nor, of the address space that they may use, its 3 GiB of libraries."""
    # Looked up once, in /proc/cpuinfo; programs at `namespaces` have none, and would compute without AVX.
    torch.backends.cpu.get_cpu_capability()
    # What workers of a DataLoader hand over goes through their pipes, as all else does: torch's own way needs sockets.
    from multiprocessing.reduction import ForkingPickler
    for kind in [kind for kind, reduce in ForkingPickler._extra_reducers.items() if reduce.__module__ == "torch.multiprocessing.reductions"]:
        del ForkingPickler._extra_reducers[kind]
    if one_process:
        import torch.utils.data.dataloader as dataloader
        dataloader._MultiProcessingDataLoaderIter = refuse_workers


def refuse_workers(*_):
    raise PermissionError("programs have one process here, so a DataLoader has no workers: give num_workers=0")


def installed_packages():
    """Version of each distribution on the path, by its normalized name. Of the names of folders: to read what is in them takes
    longer than all else that is done at the start, and a folder that cannot be read has nothing that can be imported."""
    found = {}
    for folder in reversed(sys.path):
        if not os.path.isdir(folder):
            continue
        for entry in os.listdir(folder):
            name, _, version = entry.removesuffix(".dist-info").partition("-")
            if entry.endswith(".dist-info") and version:
                found[re.sub(r"[-_.]+", "-", name).lower()] = version
    return found


def serve_supervisor(container=None, versions=None):
    """From the first frame on CONTROL to the end of the connection. `container`: our options if we are alone in one;
    the packages, of these `versions`, have been imported then."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the supervisor, by SIGKILL or the end of its socket
    kind, payload = receive_frame()
    if kind != b"C":
        sys.exit("the configuration has to come first")
    config = json.loads(payload)
    if container:
        config.update(space=container.scratch, cpusPerSlot=cgroup.cpus() or 1)
    zygote = Zygote(config)
    if config["cpus"]:
        os.sched_setaffinity(0, config["cpus"])
    try:
        if container:  # before there may be namespaces, from where it cannot be seen
            zygote.stay_below(cgroup.memory_for_programs(watch.inherited_bytes("/proc")))
        zygote.enter_level()
    except OSError as error:
        send_json(b"H", {"error": str(error)})
        sys.exit(1)
    versions = zygote.warm_up(versions)
    send_json(b"H", {
        "level": zygote.level, "landlockAbi": zygote.landlock_version, "ownUser": zygote.user is not None,
        "procMounted": zygote.child_proc, "processesCounted": zygote.count_processes, "versions": versions,
        "packages": installed_packages(), "residentBytes": watch.own_bytes(zygote.proc)[1], "memoryBytes": zygote.memory_bytes,
        "directory": container and os.path.dirname(container.listen),
    })
    zygote.serve()


def listen_for_supervisors(arguments):
    import argparse

    parser = argparse.ArgumentParser(prog="zygote.py", description="A sandbox that a supervisor connects to.")
    parser.add_argument("--listen", required=True, metavar="SOCKET", help="path of the socket to listen at")
    parser.add_argument("--scratch", default="/scratch", metavar="DIR", help="emptied before and after each connection")
    parser.add_argument("--warm", default=",".join(WARM), metavar="NAMES", help="modules to import beforehand")
    options = parser.parse_args(arguments)
    listen.prepare()
    versions = import_packages(filter(None, options.warm.split(",")), one_process=True)
    memory.settle("/proc")
    listen.serve(options.listen, options.scratch, lambda: serve_supervisor(options, versions))


def main():
    try:
        if len(sys.argv) > 1:
            listen_for_supervisors(sys.argv[1:])
        else:
            serve_supervisor()
    except (BrokenPipeError, ConnectionResetError):
        os._exit(0)  # without a supervisor there is nothing to live for


if __name__ == "__main__":
    main()
