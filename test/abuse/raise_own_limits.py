# Raises its own limits, leaves its processors, outlives its parent, makes itself dumpable.
import ctypes, os, resource
for name in ("AS", "FSIZE", "NOFILE", "CPU", "CORE"):
    number = getattr(resource, "RLIMIT_" + name)
    soft, hard = resource.getrlimit(number)
    try:
        resource.setrlimit(number, (hard + 1, hard + 1))
        print("BREACH", name)
    except (OSError, ValueError):
        pass
libc = ctypes.CDLL(None, use_errno=True)
for option, what in ((1, "parent-death signal"), (4, "dumpable"), (36, "subreaper")):
    if libc.prctl(option, 0 if option == 1 else 1, 0, 0, 0) == 0:
        print("BREACH", what)
try:
    os.sched_setaffinity(0, range(os.cpu_count()))
    print("BREACH affinity")
except OSError:
    pass
print("held")
