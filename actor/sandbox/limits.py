"""Limits on one program's resources, enforced by the kernel where it can and by the watch where it cannot.

Covered, at both levels: address space (RLIMIT_AS; not with a GPU, gpu.py), so that a program that takes too much gets a MemoryError; the
size of a file; open files of a process, and of all the program's processes together; processor seconds, as a backstop to the supervisor's
clock; core dumps; locked memory; message queues; pending signals and timers, which the kernel counts by user. Every WATCH_SECONDS
(watch.py): resident memory, including everything in shared mappings, processes and threads. Every SLOW_WATCH_SECONDS: record locks. Files
and bytes in scratch and $TMPDIR, if these are directories (at `namespaces` they are a tmpfs with a size): scratch.py. The watch checks a
program more often whose use grows quickly.
Pipes and sockets hold kernel memory that belongs to no process: above FEW_OPEN_FILES each counts as memory with the most that it can hold.
Covered only at `namespaces` on Linux >= 5.14: the number of processes, by the kernel. Covered only if the supervisor has a control group
for the slot (control-group.ts): a program that takes everything between two looks of the watch cannot exhaust the machine's memory; the
kernel kills it first in the group (`prefer_as_victim`).
Not covered: the speed of writes to disks, and so the bytes that are written between two looks.
"""

import os
import resource

OPEN_FILES = 1024  # of one process
OPEN_FILES_OF_ALL = 4096  # of a program with all its processes
FEW_OPEN_FILES = 64
PIPE_BYTES, SOCKET_BYTES = 64 << 10, 208 << 10  # the most that one can hold: sixteen pages; the default net.core.wmem_default
RECORD_LOCKS = 1000  # of a program with all its processes, because each takes kernel memory
PENDING_SIGNALS = 256
WATCH_SECONDS = 0.025
SLOW_WATCH_SECONDS = 0.25
DISK_WATCH_SECONDS = 0.01  # if scratch and $TMPDIR are directories
# The watch looks more often at a program that takes more than HASTY_SHARE of a limit between two looks; at its files for HASTY_SECONDS.
HASTY_SHARE, HASTY_SECONDS = 1 / 32, 0.05
HASTY_WATCH_SECONDS, HASTY_DISK_WATCH_SECONDS = 0.005, 0.001
COUNTING_SHARE = 0.1  # largest share of the time in which files are counted while a program runs
STOP_SECONDS = 0.005  # longest wait for a program to stop while its files are counted
# Not 0: a machine may pipe core dumps to a program of root, which 0 does not prevent. 1 prevents it (`man 5 core`, fs/coredump.c) and is
# too small for a file.
CORE_BYTES = 1


def set_rlimits(limits, address_space_bytes, count_processes):
    """Sets this process's rlimits for good. `address_space_bytes`: address space that the fork has inherited and may keep in addition to
    its memory; None: the address space is not limited (gpu.py)."""
    ceilings = {
        resource.RLIMIT_FSIZE: limits["scratchBytes"],
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_CORE: CORE_BYTES,
        # Only a backstop: the supervisor's clock ends an execution.
        resource.RLIMIT_CPU: int(limits["timeoutSeconds"] * max(1, limits["processes"])) + 10,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: PENDING_SIGNALS,
    }
    if address_space_bytes is not None:
        ceilings[resource.RLIMIT_AS] = limits["memoryBytes"] + address_space_bytes
    if count_processes:
        ceilings[resource.RLIMIT_NPROC] = limits["processes"] + 3  # the zygote, its process that waits for the program, and the next child may count too
    for name, ceiling in ceilings.items():
        _, hard = resource.getrlimit(name)
        if hard != resource.RLIM_INFINITY:
            ceiling = min(ceiling, hard)
        resource.setrlimit(name, (ceiling, ceiling))


def prefer_as_victim(proc):
    """Makes the kernel kill this process first if memory runs out in a control group or on the machine."""
    try:
        file = os.open(f"{proc}/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, b"1000")
        finally:
            os.close(file)
    except OSError:
        pass  # /proc is read-only
