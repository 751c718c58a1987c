"""What the zygote imports before any program comes, once for all of them: `WARM`, or the names that it is given at its start.

The list stays the same for a whole run, and is the same for all its sandboxes: an import can change what a program gets
(`sklearn.experimental.enable_iterative_imputer` adds a class to a module of scikit-learn) and how long the program takes. So no
list may come from what programs say or do, and no module of the list may change another module.
A module that is not installed is left out. So is one that leaves threads behind, since a fork has one thread only: where the
modules leave threads the zygote begins anew and is `careful`, and tries each module in a fork first.
Not covered: what an installed package does at its import; whoever chooses the environment trusts it.
"""

import os
import re
import sys

import memory
import program

WARM = ("numpy", "pandas", "scipy.sparse", "scipy.stats", "joblib", "sklearn.compose", "sklearn.ensemble", "sklearn.impute",
        "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection", "sklearn.naive_bayes", "sklearn.neighbors",
        "sklearn.pipeline", "sklearn.preprocessing", "sklearn.svm", "sklearn.tree", "sklearn.feature_extraction.text",
        "sklearn.neural_network", "sklearn.decomposition", "torch")
_VERSIONED = ("numpy", "pandas", "sklearn", "scipy", "torch")


class ThreadsLeft(Exception):
    """A process that must not fork: its children would lack these threads, and have the locks that they hold."""


def import_packages(names, one_process, proc, temporary, careful=False):
    """Imports `names`, in this order. Returns {versions, warm: which of `names` are imported}. `one_process`: programs cannot
    fork. `proc`: where /proc is mounted. `temporary`: a directory that packages may write to, best the one that programs have.
    Raises ThreadsLeft; if `careful` only where no module can be blamed."""
    # No pool of threads may exist when we fork; a child gets its own number of them.
    os.environ.update(program.environment("/", temporary, 1, one_process), JE_ARROW_MALLOC_CONF="background_thread:false")
    reserved = memory.reserve() if names else None
    for name in names:
        if careful and _leaves_threads(name, proc):
            print(f"{name} is not imported beforehand: it leaves threads behind, or ends the process", file=sys.stderr, flush=True)
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
    threads = _threads(proc)
    if threads > 1:
        raise ThreadsLeft(f"{threads - 1} threads were left by the packages {', '.join(names)}")
    versions = {name: sys.modules[name].__version__ for name in _VERSIONED if name in sys.modules}
    return {
        "versions": {"python": ".".join(map(str, sys.version_info[:3])), **versions},
        "warm": [name for name in names if name in sys.modules],
    }


def _threads(proc):
    return len(os.listdir(f"{proc}/self/task"))


def _leaves_threads(name, proc):
    """Whether the process has other threads once it has imported it: tried in a fork."""
    pid = os.fork()
    if pid == 0:
        try:
            __import__(name)
        finally:
            os._exit(int(_threads(proc) > 1))
    return os.waitpid(pid, 0)[1] != 0


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
