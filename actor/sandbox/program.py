"""Runs a program as `__main__` in a restricted process, ends it as the interpreter would, and reports how it ended."""

import atexit
import builtins
import ctypes
import gc
import importlib.machinery
import io
import json
import linecache
import multiprocessing.context
import os
import random
import selectors
import sys
import threading
import traceback
import types

import markers
from channel import Channel

NAME = "program.py"
REPORT_DESCRIPTOR = 3
USER = "program"
END = "_end"  # in `sys`, see `_finalize`
# Made here, because the first use of each takes longer than all that follow.
_exit, _hide_from_collector = ctypes.pythonapi.Py_Exit, ctypes.pythonapi.PyObject_GC_UnTrack
_FIELDS = ctypes.c_char * (dict.__basicsize__ - object.__basicsize__)  # of a dict, behind the head that every object has

selectors.DefaultSelector = selectors.PollSelector  # for asyncio: programs have no epoll (seccomp.py)
# A fork server receives descriptors over a socket, which programs cannot send (seccomp.py). `spawn` gives a process the same start: a new
# interpreter that imports the program again.
multiprocessing.context.ForkServerProcess._Popen = staticmethod(multiprocessing.context.SpawnProcess._Popen)


def environment(scratch, temporary, cpus, one_process):
    """Returns the program's whole environment. Libraries use one thread per processor of the slot, because more threads would disturb other
    slots."""
    threads = {name: str(cpus) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
               "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "LOKY_MAX_CPU_COUNT")}
    if one_process:
        threads["JOBLIB_MULTIPROCESSING"] = "0"
    return {
        "PATH": os.path.dirname(sys.executable) + ":/usr/bin:/bin",
        "HOME": scratch, "USER": USER, "LOGNAME": USER, "TMPDIR": temporary, "LANG": "C.UTF-8", "PYTHONUTF8": "1", "PYTHONHASHSEED": "0",
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


class Program:
    """A program that is ready to run. `text`: the source (bytes) with the inserted lines; `nonce`: see markers.py. Call this in the program's
    directory, after the last change of descriptors: it writes the source as a file there."""

    def __init__(self, text, nonce):
        self.source, self.marks = markers.take_out(text, nonce)
        self.report = Channel(REPORT_DESCRIPTOR)
        self.print_marker = markers.printer([mark.text for mark in self.marks]) if self.marks else None
        self.path = os.path.abspath(NAME)
        try:
            # Created read-only: at `landlock`, chmod has no effect.
            with open(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444), "wb") as file:
                file.write(self.source)
        except OSError:
            pass  # larger than scratch: it runs all the same

    def run(self):
        """Runs the program and ends the process."""
        modules = sys.modules  # the interpreter's own dict, whatever the program puts in its place
        last = next(reversed(modules))
        main = types.ModuleType("__main__")
        loader = importlib.machinery.SourceFileLoader("__main__", self.path)
        main.__dict__.update(__file__=self.path, __builtins__=builtins, __loader__=loader, __cached__=None)
        if sys.version_info < (3, 14):
            main.__annotations__ = {}
        modules["__main__"] = main
        sys.argv[:] = [NAME]
        sys.path[0:0] = [os.path.dirname(self.path)]
        gc.enable()
        status = self._ended_by(lambda: exec(self._compile(), main.__dict__))
        del main  # otherwise the module would outlive the finalizers of its objects, and they would not see its names
        self._ended_by(lambda: (threading._shutdown(), atexit._run_exitfuncs()))
        _finalize(status, modules, last)

    def _compile(self):
        if self.print_marker:
            builtins.__dict__[markers.PRINTER] = self.print_marker
            try:
                return compile(markers.insert(self.source, self.marks, NAME), NAME, "exec", dont_inherit=True)
            except (SyntaxError, ValueError):
                pass  # let the program's own text raise the error
        return compile(self.source, NAME, "exec", dont_inherit=True)

    def _ended_by(self, action):
        """Returns the exit status."""
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
            self._show(error)
            return 1

    def _show(self, error):
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
        self.report.write(json.dumps(report).encode(), wait=False)
        text = self.source.decode("utf-8", "replace")
        linecache.cache[NAME] = (len(text), None, text.splitlines(True), NAME)
        hook = sys.excepthook if sys.excepthook is not sys.__excepthook__ else traceback.print_exception
        try:
            hook(type(error), error, frames)
        except BaseException:
            traceback.print_exception(type(error), error, frames)


def _finalize(status, modules, last):
    """Ends the process with `status`, after the interpreter's own finalization: it stops daemon threads, clears the program's modules, and
    so runs finalizers and flushes files that are still open.

    `modules`: the interpreter's own dict. Those up to the name `last`, which the zygote imported, stay whole: to remove them, and even to
    count a reference to each, would copy the pages that they are on, which takes 4 ms and more. The interpreter clears `sys` after all
    other modules; that ends the process (`End`).
    """
    if not _flush(sys.stdout) or not _flush(sys.stderr):
        status = 120  # the status that CPython uses
    own = []
    for name in reversed(modules):
        if name == last:
            break
        own.append(name)
    own = [name for name in ("sys", "builtins", "__main__", *reversed(own)) if name in modules]
    sys.setswitchinterval(1000)  # daemon threads must not see that modules are absent
    gc.disable()
    whole = {name: modules[name] for name in dict.fromkeys(own)}
    _hide_from_collector(ctypes.py_object(whole))  # each collection would visit all of the zygote's modules
    _swap(whole, modules)  # the interpreter's only dict of modules now has these, and `whole` keeps the zygote's until the end
    for name in own:
        whole.pop(name, None)
    gc.enable()
    setattr(sys, END, End(status))
    _exit(ctypes.c_int(status))


def _swap(one, other):
    """Exchanges the content of two dicts, without a look at it."""
    first, second = (_FIELDS.from_address(id(each) + object.__basicsize__) for each in (one, other))
    first[:], second[:] = second.raw, first.raw


class End:
    """Ends the process when it is deleted. Files that outlived their modules, for example in attributes of the zygote's modules, are closed."""

    def __init__(self, status):
        # As attributes, because by then names of modules may be gone.
        self.status, self.exit, self.collect, self.objects, self.kind = status, os._exit, gc.collect, gc.get_objects, io.IOBase.__base__

    def __del__(self):
        try:
            self.collect()
            for file in self.objects():
                try:
                    if isinstance(file, self.kind):
                        file.flush() if file in (sys.stdout, sys.stderr) else file.close()
                except BaseException:
                    pass
        finally:
            self.exit(self.status)


def _flush(stream):
    """Returns whether the stream could be flushed, as far as CPython requires it at the end."""
    try:
        if stream is None or getattr(stream, "closed", False):
            return True
        stream.flush()
        return True
    except BaseException as error:
        try:
            sys.unraisablehook(types.SimpleNamespace(
                exc_type=type(error), exc_value=error, exc_traceback=None, err_msg=None, object=stream))
        except BaseException:
            pass
        return False
