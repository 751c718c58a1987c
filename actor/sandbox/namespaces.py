"""The level `namespaces`: a root directory that contains only the runtime and the public data.

The zygote enters user, mount, process, network, IPC and UTS namespaces once (`enter`) and builds that root (`build_root`). Each execution
then gets process, mount, network, IPC and UTS namespaces of its own (`fork`, then `isolate` and `furnish` in the child), and a tmpfs that
ends with them. None of this needs root; if the actor is root, the program also becomes an unprivileged user.
"""

import os

import procfs
from linux import CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWUTS
from linux import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_REC
from linux import make_read_only, mount, pivot_root, setns, umount, unshare

INSIDE_ID = 1000  # the program's user inside its namespace
OUTSIDE_ID = 65534  # the program's user outside, if the actor is root: nobody
# Only the zygote sees this directory: each child unmounts it first.
PRIVATE = "/.zygote"
COVERS = PRIVATE + "/covers"
SPACE = "/space"  # the execution's tmpfs
SCRATCH = SPACE + "/scratch"

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
CONFIGURATION = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives")
DEVICES = ("null", "zero", "full", "random", "urandom")


def enter():
    """Puts this process into new namespaces; its next child is process 1 there. Returns whether the program can become another user. Raises
    OSError if the system does not allow the namespaces."""
    user, group = os.getuid(), os.getgid()
    target = os.getpid()
    entered_read, entered = os.pipe()
    answer_read, answer = os.pipe()
    helper = os.fork()
    if helper == 0:  # stays outside, because only an outside process may map more than one id
        os.close(entered)
        os.read(entered_read, 1)
        try:
            os.write(answer, b"two" if _map_ids(target, user, group) else b"one")
        except OSError as error:
            os.write(answer, f"!{error}".encode())
        os._exit(0)
    os.close(answer)
    try:
        unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
    finally:
        os.close(entered)
        said = os.read(answer_read, 500).decode()
        os.close(answer_read)
        os.close(entered_read)
        os.waitpid(helper, 0)
    if said.startswith("!"):
        raise OSError(f"uid_map: {said[1:]}")
    return said == "two"


def _map_ids(pid, user, group):
    """Writes the id maps of `pid`'s new user namespace from outside. Returns True if the program gets a user id of its own."""
    if user == 0:
        try:
            for name in ("uid_map", "gid_map"):
                _write(f"/proc/{pid}/{name}", f"0 0 1\n{INSIDE_ID} {OUTSIDE_ID} 1\n")
            return True
        except PermissionError:  # root of a container without CAP_SETUID
            pass
    _write(f"/proc/{pid}/setgroups", "deny")
    _write(f"/proc/{pid}/uid_map", f"{INSIDE_ID} {user} 1\n")
    _write(f"/proc/{pid}/gid_map", f"{INSIDE_ID} {group} 1\n")
    return False


def _write(path, text):
    with open(path, "w") as file:
        file.write(text)


def build_root(runtime, inputs, devices):
    """Builds the root and enters it. `runtime`: directories of the interpreter and its packages; `inputs`: {task: directory with public
    data}, bound to PRIVATE/inputs/<index> (returned by task); `devices`: files for /dev in addition to DEVICES."""
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    base = "/sys"  # a directory that always exists and from which nothing is used; it is covered only in this mount namespace
    mount("tmpfs", base, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=4m")
    os.chdir(base)
    for path in SYSTEM:
        if os.path.islink(path):
            os.symlink(os.readlink(path), base + path)
        elif os.path.isdir(path):
            _bind(path, base + path)
    for path in (*CONFIGURATION, *_outermost(runtime)):
        if os.path.exists(path):
            _bind(os.path.realpath(path), base + path)
    for path in (*(f"/dev/{name}" for name in DEVICES), *devices):
        _bind(path, f"{base}/dev/{os.path.basename(path)}", read_only=False)
    for name, place in (("fd", "/proc/self/fd"), ("shm", SPACE + "/shm")):
        os.symlink(place, f"{base}/dev/{name}")
    # If the environment is below /tmp, /tmp is a directory of the read-only root; programs then only have $TMPDIR.
    if not os.path.lexists(base + "/tmp"):
        os.symlink(SPACE + "/tmp", base + "/tmp")
    for path in (SPACE + "/tmp", SPACE + "/shm", "/proc", PRIVATE):
        os.makedirs(base + path, mode=0o755)
    # A separate mount, so that a child can drop it and its content with one call.
    mount("tmpfs", base + PRIVATE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700,size=1m")
    places = {}
    for index, (task, path) in enumerate(sorted(inputs.items())):
        places[task] = f"{PRIVATE}/inputs/{index}"
        _bind(os.path.realpath(path), base + places[task])
    for name in ("proc", "old", "covers"):
        os.mkdir(f"{base}{PRIVATE}/{name}", 0o755)
    procfs.write_covers(base + COVERS)
    try:
        mount("proc", base + PRIVATE + "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except OSError:  # the container hides parts of /proc: use the /proc that exists
        mount("/proc", base + PRIVATE + "/proc", None, MS_BIND | MS_REC)
    pivot_root(base, base + PRIVATE + "/old")
    os.chdir("/")
    umount(PRIVATE + "/old")
    make_read_only("/")  # otherwise, without root and Landlock, a program could leave files for the next one
    return places


def _outermost(paths):
    """Returns `paths` without paths below another one or below /usr."""
    kept = ["/usr"]
    for path in sorted(os.path.abspath(path) for path in paths):
        if not any(path == above or path.startswith(above + "/") for above in kept):
            kept.append(path)
    return kept[1:]


def _bind(source, target, read_only=True):
    os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
    if os.path.isdir(source):
        os.makedirs(target, mode=0o755, exist_ok=True)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    mount(source, target, None, MS_BIND | MS_REC)
    if read_only:
        make_read_only(target)


def fork(own_pid_namespace):
    """Like os.fork(), but the child is process 1 of a new PID namespace: when it ends, the kernel kills all other processes there.

    Process 1 ignores signals that it sends to itself without a handler (`kill(getpid(), 9)` has no effect). Signals that the processor
    raises, like SIGSEGV, and signals of the zygote end it as usual."""
    unshare(CLONE_NEWPID)
    pid = os.fork()
    if pid:
        setns(own_pid_namespace, CLONE_NEWPID)  # children are in the own namespace again; without it the next unshare would fail
    return pid


def can_mount_proc(own_pid_namespace):
    """Returns whether programs can have a /proc with only their own processes in it. Tries it in a child."""
    pid = fork(own_pid_namespace)
    if pid == 0:
        try:
            unshare(CLONE_NEWNS)
            procfs.mount_covered(COVERS)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def isolate(with_proc):
    """Gives the child namespaces of its own."""
    unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
    if with_proc:
        procfs.mount_covered(COVERS)  # the kernel allows this only while the zygote's full /proc is still visible


def furnish(input_place, memory_bytes, bytes_, files):
    """Gives the isolated child an empty scratch directory with `input` in it, and removes everything of the zygote. `memory_bytes`: for
    /proc/meminfo; None without a /proc."""
    mount("tmpfs", SPACE, "tmpfs", MS_NOSUID | MS_NODEV, f"mode=0755,size={bytes_},nr_inodes={files + 9}")
    if memory_bytes is not None:
        procfs.mount_memory(memory_bytes, SPACE)
    for name in ("scratch", "tmp", "shm"):
        os.mkdir(f"{SPACE}/{name}", 0o700)
        os.chown(f"{SPACE}/{name}", INSIDE_ID, INSIDE_ID)
    os.mkdir(SCRATCH + "/input", 0o755)
    if input_place:
        mount(input_place, SCRATCH + "/input", None, MS_BIND | MS_REC)
    umount(PRIVATE)
