"""Runs a program as `__main__` in a restricted process and reports how it ended."""

import atexit
import builtins
import gc
import importlib.machinery
import json
import linecache
import os
import random
import selectors
import sys
import threading
import traceback
import types

NAME = "program.py"
REPORT_DESCRIPTOR = 3

selectors.DefaultSelector = selectors.PollSelector  # for asyncio: programs have no epoll (seccomp.py)


def environment(scratch, temporary, cpus, one_process):
    """Returns the program's whole environment. Libraries use one thread per processor of the slot, because more threads would disturb other
    slots."""
    threads = {name: str(cpus) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
               "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "LOKY_MAX_CPU_COUNT")}
    if one_process:
        threads["JOBLIB_MULTIPROCESSING"] = "0"
    return {
        "PATH": os.path.dirname(sys.executable) + ":/usr/bin:/bin",
        "HOME": scratch, "TMPDIR": temporary, "LANG": "C.UTF-8", "PYTHONUTF8": "1", "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1", "MPLCONFIGDIR": temporary, "JOBLIB_TEMP_FOLDER": temporary, **threads,
    }


def reseed(seed):
    """Seeds the random numbers; otherwise every program would continue the zygote's sequence."""
    random.seed(seed)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(seed % 2**32)
    else:
        sys.meta_path.insert(0, SeedsNumpy(seed % 2**32))
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(seed)


class SeedsNumpy:
    """Seeds numpy when the program imports it, if the zygote has not imported it, so that the same program draws the same numbers."""

    def __init__(self, seed):
        self.seed = seed

    def find_spec(self, name, path=None, target=None):
        if name != "numpy.random":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                module.seed(self.seed)

            spec.loader.exec_module = exec_module
        return spec


def open_streams():
    """Opens new text streams over descriptors 0-2. They are line-buffered, so a killed program's output is complete up to its last line."""
    options = {"encoding": "utf-8", "errors": "backslashreplace", "closefd": False}
    sys.stdin = sys.__stdin__ = open(0, "r", **options)
    sys.stdout = sys.__stdout__ = open(1, "w", buffering=1, **options)
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, **options)


def run(source):
    """Runs `source` (bytes) and returns its exit status. Does the interpreter's work at exit here, but does not unload modules, which would
    take longer than most programs."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=NAME, __builtins__=builtins)
    sys.modules["__main__"] = main
    sys.argv[:] = [NAME]
    sys.path[0:0] = [""]
    gc.enable()
    status = _ended_by(lambda: exec(compile(source, NAME, "exec", dont_inherit=True), main.__dict__), source)
    finish = _ended_by(lambda: (threading._shutdown(), atexit._run_exitfuncs()), source)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            status = status or 120  # the status that CPython uses
    return status or finish


def _ended_by(action, source):
    try:
        action()
        return 0
    except SystemExit as end:
        if end.code is None:
            return 0
        if isinstance(end.code, int):
            return end.code & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        _show(error, source)
        return 1


def _show(error, source):
    """Prints the traceback as the interpreter would, without the sandbox's frames, and reports the type and line."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    error = error.with_traceback(frames)
    lines = [step.lineno for step in traceback.extract_tb(frames, limit=64) if step.filename == NAME]
    if isinstance(error, SyntaxError) and error.filename == NAME:
        lines.append(error.lineno)
    kinds = [kind.__name__ for kind in type(error).__mro__]
    report = {"exception": kinds[0][:100], "line": lines[-1] if lines else None, "memory": "MemoryError" in kinds}
    try:
        os.write(REPORT_DESCRIPTOR, json.dumps(report).encode())
    except OSError:
        pass
    text = source.decode("utf-8", "replace")
    linecache.cache[NAME] = (len(text), None, text.splitlines(True), NAME)
    hook = sys.excepthook if sys.excepthook is not sys.__excepthook__ else traceback.print_exception
    try:
        hook(type(error), error, frames)
    except BaseException:
        traceback.print_exception(type(error), error, frames)
