"""What the zygote imports before any program comes, once for all of them: `WARM`, or the names that it is told.

Those names may be what the run's programs import (learner/server/warm.ts), so they come out of hostile text.
Covered: only packages that are installed are imported, by the names of their public modules, never a path or anything
beside a program (programs have not run here, and their directory is not on sys.path). A module that is not one of WARM is
tried in a fork first, and refused where a zygote could not live with it: it fails, ends or hangs its process, leaves threads
(a fork has one), processes or open files (which a child closes) behind, or takes too much memory. Where those of WARM leave
threads in this environment, the zygote begins anew and is `careful`: then they are tried, too. What all of them take together
is bounded in number, seconds and bytes. So a lie costs speed, and nothing else.
Not covered: what an installed package does at its import; whoever chooses the environment trusts it.
"""

import importlib
import importlib.machinery
import os
import re
import select
import signal
import sys
import time

import memory
import program

WARM = ("numpy", "pandas", "scipy.sparse", "scipy.stats", "joblib", "sklearn.compose", "sklearn.ensemble", "sklearn.impute",
        "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection", "sklearn.naive_bayes", "sklearn.neighbors",
        "sklearn.pipeline", "sklearn.preprocessing", "sklearn.svm", "sklearn.tree", "sklearn.feature_extraction.text",
        "sklearn.neural_network", "sklearn.decomposition", "torch")
MOST_NAMES = 64
TRIAL_SECONDS = 60  # of all trials together; what is left then is not imported
LARGEST_BYTES = 512 << 20  # of memory that is no file's
# In a container a program may come to copy all of it, and has 512 MiB beside what it may use. Or a part of the container's.
LARGEST_IN_CONTAINER_BYTES, LARGEST_SHARE_OF_CONTAINER = 224 << 20, 1 / 16
# Public modules: `numpy.f2py.__main__` runs a program, tests do what they like.
_NAME = re.compile(r"(?!.*\b(?:tests?|conftest)\b)[A-Za-z][A-Za-z0-9_]{0,60}(?:\.[A-Za-z][A-Za-z0-9_]{0,60}){0,3}", re.ASCII)
_VERSIONED = ("numpy", "pandas", "sklearn", "scipy", "torch")


class ThreadsLeft(Exception):
    """A process that must not fork: its children would lack these threads, and have the locks that they hold."""


def largest_bytes(container_bytes):
    """`container_bytes`: the limit of the container that we are alone in, if it has one."""
    if container_bytes is None:
        return LARGEST_BYTES
    return max(LARGEST_IN_CONTAINER_BYTES, int(container_bytes * LARGEST_SHARE_OF_CONTAINER))


def import_packages(names, one_process, proc, temporary, careful=False, allowed_bytes=LARGEST_BYTES):
    """Imports `names`, in this order. Returns {versions, warm: what is imported of them, refused: {name: why}}; what is not
    installed is in neither. `one_process`: programs cannot fork. `proc`: where /proc is mounted. `temporary`: a directory that
    packages may write to, best the one that programs have. Raises ThreadsLeft."""
    # No pool of threads may exist when we fork; a child gets its own number of them.
    os.environ.update(program.environment("/", temporary, 1, one_process), JE_ARROW_MALLOC_CONF="background_thread:false")
    known = set() if careful else {name.rsplit(".", depth)[0] for name in WARM for depth in range(3)}
    names = [name for name in names if name in known or _is_installed(name)][:MOST_NAMES]
    reserved = memory.reserve() if names else None
    refused = {}
    deadline = time.monotonic() + TRIAL_SECONDS
    for name in names:
        if name not in known and name not in sys.modules:
            why = _try_in_fork(name, proc, deadline, allowed_bytes)
            if why is not None:
                if why:
                    refused[name] = why
                continue
        try:
            __import__(name)
        except ImportError:
            continue  # an environment without it: a program that needs it fails by itself
    if "numpy" in sys.modules:
        import numpy.random  # it comes when it is first used: in each child, where random numbers are seeded (30 ms)
    if "torch" in sys.modules:
        _prepare_torch(sys.modules["torch"], one_process)
    del reserved
    threads = len(os.listdir(f"{proc}/self/task"))
    if threads > 1:
        raise ThreadsLeft(f"{threads - 1} threads were left by the packages {', '.join(names)}")
    versions = {name: sys.modules[name].__version__ for name in _VERSIONED if name in sys.modules}
    return {
        "versions": {"python": ".".join(map(str, sys.version_info[:3])), **versions},
        "warm": [name for name in names if name in sys.modules], "refused": refused,
    }


def _prepare_torch(torch, one_process):
    """Imported here it costs programs neither its seconds nor, of the address space that they may use, its 3 GiB of libraries."""
    # Looked up once, in /proc/cpuinfo; programs at `namespaces` have none, and would compute without AVX.
    torch.backends.cpu.get_cpu_capability()
    # What workers of a DataLoader hand over goes through their pipes, as all else does: torch's own way needs sockets.
    from multiprocessing.reduction import ForkingPickler
    for kind in [kind for kind, reduce in ForkingPickler._extra_reducers.items() if reduce.__module__ == "torch.multiprocessing.reductions"]:
        del ForkingPickler._extra_reducers[kind]
    if one_process:
        import torch.utils.data.dataloader as dataloader
        dataloader._MultiProcessingDataLoaderIter = _refuse_workers


def _refuse_workers(*_):
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


def _is_installed(name):
    """Whether it names a module of a package that somebody installed: neither of Python itself nor of a program."""
    if not _NAME.fullmatch(name):
        return False
    package = name.partition(".")[0]
    return package not in sys.stdlib_module_names and importlib.machinery.PathFinder.find_spec(package) is not None


def _try_in_fork(name, proc, deadline, allowed_bytes):
    """None if it can be imported here; else why not, and "" if there is no such module."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        return f"{TRIAL_SECONDS} s for all of them are over"
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.write(write_end, b"!" + _try(name, proc, allowed_bytes).encode("utf-8", "replace")[:200])
        finally:
            os._exit(0)
    os.close(write_end)
    ended = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    late = not poll.poll(seconds * 1000)
    try:
        os.killpg(pid, signal.SIGKILL)  # what it started dies with it
    except ProcessLookupError:
        pass  # it did not come to setsid
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.set_blocking(read_end, False)
    try:
        said = os.read(read_end, 1000).decode("utf-8", "replace")
    except BlockingIOError:
        said = ""
    os.close(read_end)
    os.close(ended)
    if late:
        return f"it takes longer than {seconds:.0f} s"
    if not said:
        return f"it ends the process ({f'signal {-code}' if code < 0 else f'exit status {code}'})"
    return {"!": "", "!fits": None}.get(said, said[1:])


def _try(name, proc, allowed_bytes):
    """In a fork: imports it. "fits", "" if there is no such module, else why it does not fit."""
    files = set(os.listdir(f"{proc}/self/fd"))
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        return "" if f"{name}.".startswith(f"{error.name}.") else f"it needs {error.name}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    if len(os.listdir(f"{proc}/self/task")) > 1:
        return "it leaves threads behind"
    with open(f"{proc}/self/task/{os.readlink(f'{proc}/self')}/children") as file:
        if file.read().strip():
            return "it leaves processes behind"
    if set(os.listdir(f"{proc}/self/fd")) - files:
        return "it leaves open files behind"
    with open(f"{proc}/self/statm", "rb") as file:
        fields = file.read().split()
    bytes_ = (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
    return "fits" if bytes_ <= allowed_bytes else f"with it {bytes_ >> 20} MiB are imported, and {allowed_bytes >> 20} are allowed"
