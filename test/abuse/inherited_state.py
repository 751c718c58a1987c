# Looks for state that a fork of a long-running process may have inherited: descriptors, variables, signals, timers, groups, capabilities, a
# terminal, missing limits.
import os, resource, signal, socket, stat, sys
def check(what, holds):
    if not holds:
        print("BREACH", what)
descriptors = set()
for number in range(1024):
    try:
        found = os.fstat(number)
        descriptors.add(number)
        check(f"descriptor {number} is a directory", not stat.S_ISDIR(found.st_mode))
    except OSError:
        pass
check(f"descriptors {descriptors}", descriptors == {0, 1, 2, 3})
for number in (1, 2):
    try:
        check("somebody's name at the other end", socket.socket(fileno=os.dup(number)).getpeername() in ("", b""))
    except OSError:
        pass
check("variables", not any(word in key for key in os.environ for word in ("SECRET", "TOKEN", "LONGRUN", "KUBERNETES", "OF_THE_CONTAINER")))
check("signals blocked", signal.pthread_sigmask(signal.SIG_BLOCK, []) == set())
check("handlers", all(signal.getsignal(number) in (signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler, None) for number in range(1, 65) if number not in (9, 19)))
check("timers", signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0) and signal.alarm(0) == 0)
check("signals that wait", signal.sigpending() == set())
check("groups", os.getuid() == os.geteuid() and os.getgid() == os.getegid())
check("no terminal", not any(os.isatty(number) for number in descriptors))
try:
    os.close(os.open("/dev/tty", os.O_RDONLY))
    check("a controlling terminal", False)
except OSError:
    pass
check("the umask", os.umask(0o022) in (0o022, 0o077, 0o002))
for name in ("NOFILE", "FSIZE", "CORE", "MEMLOCK", "MSGQUEUE", "SIGPENDING", "CPU", "AS"):
    check(name, resource.getrlimit(getattr(resource, "RLIMIT_" + name, 11))[1] != resource.RLIM_INFINITY)
try:
    status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        check(name, int(status[name], 16) == 0)
    check("no_new_privs", status["NoNewPrivs"] == "1")
    check("seccomp", status["Seccomp"] == "2")
except OSError:
    pass
check("threads", len(sys._current_frames()) == 1)
check("argv", sys.argv == ["program.py"])
print("held")
