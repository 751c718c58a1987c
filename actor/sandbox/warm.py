"""Imports modules in the zygote, once for all programs: `WARM`, or the names that the zygote is given at its start. A program that uses
pandas and `sklearn.linear_model` then costs 27 ms of CPU time instead of 2,215 ms.

The list is the same for a whole run and for all its sandboxes, because an import can change a program's behaviour
(`sklearn.experimental.enable_iterative_imputer` adds a class to a module of scikit-learn) and its duration. So the list must not depend on
what programs print or do, and no module of the list may change another module.
A module that is not installed is skipped. So is a module that leaves threads behind, because a fork has only one thread: if modules leave
threads, the zygote starts anew as `careful` and tries each module in a fork first.
Not covered: what an installed package does at import; whoever chooses the environment trusts it.
"""

import os
import re
import sys

import memory
import program

WARM = ("numpy", "pandas", "scipy.sparse", "scipy.stats", "joblib", "sklearn.compose", "sklearn.ensemble", "sklearn.impute",
        "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection", "sklearn.naive_bayes", "sklearn.neighbors",
        "sklearn.pipeline", "sklearn.preprocessing", "sklearn.svm", "sklearn.tree", "sklearn.feature_extraction.text",
        "sklearn.neural_network", "sklearn.decomposition",
        # pandas and sklearn import these when a program writes a table or fits a model to one.
        "pandas.io.formats.csvs", "narwhals._interchange.dataframe", "narwhals._pandas_like.namespace", "narwhals.stable.v2._namespace", "torch")
_VERSIONED = ("numpy", "pandas", "sklearn", "scipy", "torch")


class ThreadsLeft(Exception):
    """The process must not fork: its children would lack these threads but keep the locks that they hold."""


def import_packages(names, one_process, proc, temporary, careful=False):
    """Imports `names`, in this order. Returns {versions, warm: the imported ones of `names`}. `one_process`: programs cannot fork. `proc`:
    where /proc is mounted. `temporary`: a directory that packages may write to, best the one that programs have. Raises ThreadsLeft; if
    `careful`, only if no single module is the cause."""
    # No thread pool may exist before a fork; a child makes pools with its own number of threads.
    os.environ.update(program.environment("/", temporary, 1, one_process), JE_ARROW_MALLOC_CONF="background_thread:false")
    reserved = memory.reserve() if names else None
    for name in names:
        if careful and _leaves_threads(name, proc):
            print(f"{name} is not imported beforehand: it leaves threads behind, or ends the process", file=sys.stderr, flush=True)
            continue
        try:
            __import__(name)
        except ImportError:
            continue  # not installed: a program that needs it fails by itself
    if "numpy" in sys.modules:
        import numpy.random  # numpy imports it lazily; otherwise each child would import it to seed random numbers (30 ms)
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
    """Returns whether importing the module leaves other threads. Tries it in a fork."""
    pid = os.fork()
    if pid == 0:
        try:
            __import__(name)
        finally:
            os._exit(int(_threads(proc) > 1))
    return os.waitpid(pid, 0)[1] != 0


def _prepare_torch(torch, one_process):
    """Prepares torch, which the zygote imports so that its 3 GiB of libraries cost programs neither time nor address space."""
    # torch reads /proc/cpuinfo once. Programs at `namespaces` have no such file and would compute without AVX.
    torch.backends.cpu.get_cpu_capability()
    # Sends tensors of DataLoader workers through their pipes, because torch's default needs sockets.
    from multiprocessing.reduction import ForkingPickler
    for kind in [kind for kind, reduce in ForkingPickler._extra_reducers.items() if reduce.__module__ == "torch.multiprocessing.reductions"]:
        del ForkingPickler._extra_reducers[kind]
    if one_process:
        import torch.utils.data.dataloader as dataloader
        dataloader._MultiProcessingDataLoaderIter = _refuse_workers


def _refuse_workers(*_):
    raise PermissionError("programs have one process here, so a DataLoader has no workers: give num_workers=0")


def installed_packages():
    """Returns {normalized name: version} of each distribution on the path, from the names of its folders: reading their files would take
    longer than the rest of the start. A folder that cannot be read has nothing to import."""
    found = {}
    for folder in reversed(sys.path):
        if not os.path.isdir(folder):
            continue
        for entry in os.listdir(folder):
            name, _, version = entry.removesuffix(".dist-info").partition("-")
            if entry.endswith(".dist-info") and version:
                found[re.sub(r"[-_.]+", "-", name).lower()] = version
    return found
