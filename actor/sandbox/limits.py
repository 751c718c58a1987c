"""Limits on what one program may use, held by the kernel where it can and by the watch where it cannot.

Covered, at both levels: address space, so that a program that takes too much gets a MemoryError of its own (RLIMIT_AS; not
with a GPU, gpu.py); the size of a file; open files of a process, and of all processes of the program together; processor
seconds, as a backstop to the supervisor's clock; core dumps; locked memory; message queues; signals that wait, and timers, which
the kernel counts by user. Every WATCH_SECONDS (watch.py): resident memory with everything that shared mappings hold, processes
and threads. Every SLOW_WATCH_SECONDS: record locks. Files and bytes in scratch and $TMPDIR, where these are directories (at
`namespaces` a tmpfs with a size): scratch.py. What grows quickly is looked at more often.
Pipes and sockets hold kernel memory that is in no process: where there are more than FEW_OPEN_FILES, each counts as memory with
the most that it can hold.
Covered only at `namespaces` on Linux >= 5.14: the number of processes, by the kernel. Covered only where the supervisor has
a control group for the slot (control-group.ts): that even a program that takes everything between two looks of the watch
cannot drive the machine out of memory; it is also the first that the kernel ends there (`prefer_as_victim`).
Not covered: how fast disks are written to, and so what is written to them between two looks.
"""

import resource

OPEN_FILES = 1024  # of one process
OPEN_FILES_OF_ALL = 4096  # of a program with all its processes
FEW_OPEN_FILES = 64
PIPE_BYTES, SOCKET_BYTES = 64 << 10, 208 << 10  # that one holds at most: sixteen pages; the default net.core.wmem_default
RECORD_LOCKS = 1000  # of a program with all its processes: each is kernel memory
PENDING_SIGNALS = 256
WATCH_SECONDS = 0.025
SLOW_WATCH_SECONDS = 0.25
DISK_WATCH_SECONDS = 0.01  # where scratch and $TMPDIR are directories
# A program that takes more than HASTY_SHARE of a limit between two looks is looked at more often, at its files for HASTY_SECONDS.
HASTY_SHARE, HASTY_SECONDS = 1 / 32, 0.05
HASTY_WATCH_SECONDS, HASTY_DISK_WATCH_SECONDS = 0.005, 0.001
COUNTING_SHARE = 0.1  # of the time, at most, files are counted while a program runs
STOP_SECONDS = 0.005  # for a program to stand still while its files are counted
# Not 0: a machine may pipe core dumps to a program of root's, which that does not stop. 1 does (`man 5 core`, and
# fs/coredump.c), and is too small for a file.
CORE_BYTES = 1


def set_rlimits(limits, address_space_bytes, count_processes):
    """rlimits of this process for good. `address_space_bytes`: what the fork has inherited and may keep beside its memory; None:
    its address space is not limited (gpu.py)."""
    ceilings = {
        resource.RLIMIT_FSIZE: limits["scratchBytes"],
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_CORE: CORE_BYTES,
        # A backstop only: the supervisor's clock is what ends an execution.
        resource.RLIMIT_CPU: int(limits["timeoutSeconds"] * max(1, limits["processes"])) + 10,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: PENDING_SIGNALS,
    }
    if address_space_bytes is not None:
        ceilings[resource.RLIMIT_AS] = limits["memoryBytes"] + address_space_bytes
    if count_processes:
        ceilings[resource.RLIMIT_NPROC] = limits["processes"] + 3  # the zygote, who waits for it and the next child may count too
    for name, ceiling in ceilings.items():
        _, hard = resource.getrlimit(name)
        if hard != resource.RLIM_INFINITY:
            ceiling = min(ceiling, hard)
        resource.setrlimit(name, (ceiling, ceiling))


def prefer_as_victim(proc):
    """Where memory runs out all the same, in a control group or on the machine, the kernel takes us first."""
    try:
        with open(f"{proc}/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass  # a /proc that is read-only
