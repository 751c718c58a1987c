"""Assembles the seccomp filter: which system calls a program may make, for x86_64 and aarch64.

The filter is an allow-list. A call that it does not name, such as one of a newer kernel, answers ENOSYS; the C library then falls back
to an older call. Calls that are refused on purpose answer EPERM, so that a program's error names the cause. `alone()` adds the
refusals for levels without network and PID namespaces, or with an old Landlock.

Covered:
- kernel interfaces that programs do not need;
- resources that the kernel counts by user (epoll and inotify watches, descriptors in flight, pipe sizes), which one program could exhaust
  for the supervisor and all other programs;
- memory that belongs to no process (`vmsplice`, Landlock rules, filters, locks by descriptor);
- ways past the watch: a thread with descriptors of its own;
- messages between programs by `flock`, `mincore` and `cachestat`.
Not covered: two programs that run at the same time and want to communicate can do so by record locks (`fcntl`, which SQLite needs)
and by futexes on the public data.
"""

import ctypes
import struct

from linux import CLONE_FILES, CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER
from linux import CLONE_NEWUTS, CLONE_THREAD, MACHINE, PR_SET_SECCOMP, check, libc
from system_calls import numbers_of

EPERM, ENOMEM, ENOTTY, ENOSYS, ENOPROTOOPT, EOPNOTSUPP = 1, 12, 25, 38, 92, 95
ALLOW, SILENT = -1, 0  # in addition to error numbers; SILENT: the call does nothing and reports success
RETURN_ALLOW, RETURN_KILL, RETURN_ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000

ALLOWED = """
    read write open openat close close_range stat fstat lstat newfstatat statx poll ppoll select pselect6 lseek
    pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 access faccessat faccessat2 pipe pipe2 dup dup2 dup3 fcntl ioctl
    fsync fdatasync truncate ftruncate fallocate fadvise64 readahead sync_file_range sendfile copy_file_range splice tee
    getdents getdents64 getcwd chdir fchdir rename renameat renameat2 mkdir mkdirat rmdir creat link linkat unlink unlinkat
    symlink symlinkat readlink readlinkat umask chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat
    utime utimes futimesat utimensat statfs fstatfs getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
    eventfd eventfd2 timerfd_create timerfd_settime timerfd_gettime signalfd signalfd4
    mmap mprotect munmap brk mremap msync madvise mlock mlock2 munlock mlockall munlockall mbind set_mempolicy get_mempolicy
    pkey_mprotect pkey_alloc pkey_free membarrier
    clone fork vfork execve execveat exit exit_group wait4 waitid set_tid_address set_robust_list futex rseq arch_prctl prctl
    restart_syscall sched_yield sched_getaffinity sched_getparam sched_getscheduler sched_getattr sched_get_priority_max
    sched_get_priority_min sched_rr_get_interval getpriority setpriority ioprio_get getcpu
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend rt_sigqueueinfo rt_tgsigqueueinfo
    sigaltstack pause kill tkill tgkill alarm getitimer setitimer nanosleep clock_nanosleep
    timer_create timer_settime timer_gettime timer_getoverrun timer_delete
    getpid getppid gettid getuid geteuid getgid getegid getresuid getresgid getgroups getpgrp getpgid setpgid getsid setsid
    capget getrlimit setrlimit prlimit64 getrusage times uname sysinfo
    gettimeofday time clock_gettime clock_getres getrandom
    socket socketpair connect accept accept4 bind listen setsockopt sendto recvfrom recvmsg getsockname getpeername getsockopt shutdown
""".split()

REFUSED = """
    sendmsg sendmmsg
    ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd pidfd_open pidfd_send_signal process_madvise process_mrelease
    perf_event_open epoll_create epoll_create1
    mount umount2 pivot_root chroot unshare setns open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr
    statmount listmount open_tree_attr
    bpf io_uring_setup io_uring_enter io_uring_register io_setup keyctl add_key request_key
    shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl
    mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
    mknod mknodat userfaultfd memfd_secret name_to_handle_at open_by_handle_at vmsplice
    fanotify_init fanotify_mark inotify_init inotify_init1 move_pages migrate_pages
    kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl quotactl_fd
    settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname iopl ioperm modify_ldt syslog vhangup
    personality uselib sched_setaffinity sched_setscheduler sched_setparam sched_setattr ioprio_set
    setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capset
    setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr setxattrat removexattrat file_setattr
""".split()

# These calls do nothing and report success. A lock by descriptor then carries no message to others; `sync` would flush the whole machine.
SILENTLY_REFUSED = ("flock", "sync", "syncfs")

NAMESPACES = (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID
              | CLONE_NEWNET)
AF_UNIX, SOCK_STREAM, MSG_OOB = 1, 1, 1
SOL_SOCKET, SO_REUSEADDR = 1, 2
MAP_HUGETLB = 0x40000
PRIO_PROCESS = 0
CLOSE_RANGE_UNSHARE = 2
O_ACCMODE, O_TRUNC = 3, 0o1000
ANY = 0xFFFFFFFF
OWN_PID = 0x5EC0DE1F  # stands for the program's process id until `install` knows it

# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL; record locks F_GETLK, F_SETLK, F_SETLKW; F_DUPFD_CLOEXEC, F_GETPIPE_SZ. Excluded are leases,
# because another process that opens the file waits up to 45 s; larger pipes; and locks that belong to no process.
FCNTL = (0, 1, 2, 3, 4, 5, 6, 7, 1030, 1032)
# FIONREAD, FIONBIO, FIOCLEX, FIONCLEX; requests of isatty and get_terminal_size: TCGETS, TCGETS2, TIOCGWINSZ, TIOCGPGRP.
IOCTL = (0x541B, 0x5421, 0x5451, 0x5450, 0x5401, 0x802C542A, 0x5413, 0x540F)
# With a GPU, whose driver has hundreds of requests, all are allowed except requests that type into a terminal (TIOCSTI, TIOCLINUX), direct
# signals (FIOSETOWN, SIOCSPGRP, FIOASYNC), or change a file's attributes (FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY).
IOCTL_NEVER = (0x5412, 0x541C, 0x8901, 0x8902, 0x5452, 0x40086602, 0x401C5820, 0x40806685)
# PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_GET_SECCOMP, PR_CAPBSET_READ, PR_GET_SECUREBITS,
# PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_GET_NO_NEW_PRIVS, PR_SET_THP_DISABLE, PR_GET_THP_DISABLE
PRCTL = (2, 3, 15, 16, 21, 23, 27, 29, 30, 39, 41, 42)
# SO_TYPE, SO_ERROR, SO_SNDBUF, SO_RCVBUF, SO_ACCEPTCONN, SO_PROTOCOL, SO_DOMAIN; not the peer's identity.
GETSOCKOPT = (3, 4, 7, 8, 30, 38, 39)


def everywhere(with_devices=False):
    """Returns the decisions for every isolation level: {call's name: decision}.

    A decision is ALLOW, SILENT, an errno, or, if it depends on the arguments, (cases, decision otherwise). A case is (decision,
    argument, mask, 'eq' or 'ne', value); the first case that applies decides. `with_devices`: the program may send requests to a GPU's
    driver."""
    decisions = {name: ALLOW for name in ALLOWED}
    decisions.update({name: EPERM for name in REFUSED})
    decisions.update({name: SILENT for name in SILENTLY_REFUSED})
    no_urgent_bytes = lambda argument: ([(EPERM, argument, MSG_OOB, "ne", 0)], ALLOW)  # noqa: E731
    unix_streams = ([(EPERM, 0, ANY, "ne", AF_UNIX), (EPERM, 1, 0xF, "ne", SOCK_STREAM)], ALLOW)
    decisions.update({
        "clone": ([(EPERM, 0, NAMESPACES, "ne", 0), (EPERM, 0, CLONE_THREAD | CLONE_FILES, "eq", CLONE_THREAD)], ALLOW),
        # The machine's reserved huge pages count as no process's resident memory.
        "mmap": ([(ENOMEM, 3, MAP_HUGETLB, "ne", 0)], ALLOW),
        "close_range": ([(EPERM, 2, CLOSE_RANGE_UNSHARE, "ne", 0)], ALLOW),
        # Unix stream sockets, which multiprocessing's managers need. They reach the program's own processes only: names are in its scratch
        # directory or in its network namespace. `sendmsg` is refused, so no descriptor leaves a process. Datagram pairs could send to any address.
        "socket": unix_streams, "socketpair": unix_streams,
        "setsockopt": ([(EPERM, 1, ANY, "ne", SOL_SOCKET), (ALLOW, 2, ANY, "eq", SO_REUSEADDR)], EPERM),
        "sendto": no_urgent_bytes(3), "recvfrom": no_urgent_bytes(3), "recvmsg": no_urgent_bytes(2),
        "getsockopt": (_any_of(GETSOCKOPT, 2), ENOPROTOOPT),
        "fcntl": (_any_of(FCNTL, 1), EPERM),
        "ioctl": (_any_of(IOCTL_NEVER, 1, EPERM), ALLOW) if with_devices else (_any_of(IOCTL, 1), ENOTTY),
        "prctl": (_any_of(PRCTL, 0), EPERM),
        # `os.nice`: of the caller alone. A program has no right to go above its present priority.
        "setpriority": ([(EPERM, 0, ANY, "ne", PRIO_PROCESS), (EPERM, 1, ANY, "ne", 0)], ALLOW),
        "prlimit64": ([(EPERM, 0, ANY, "ne", 0)], ALLOW),
    })
    return decisions


def alone(with_devices=False):
    """Returns the decisions where there are no namespaces: one process, signals only to itself, and no change of a file's metadata,
    which Landlock does not check and which the user's own files would allow."""
    decisions = everywhere(with_devices)
    decisions.update({name: EPERM for name in ("fork", "vfork", "execve", "execveat", "setpgid", "setsid", "tkill", "truncate",
                                               # A name of a unix socket would be one of the machine. A pair of sockets reaches nobody.
                                               "socket", "connect", "accept", "accept4", "bind", "listen", "setsockopt",
                                               "chown", "fchown", "lchown", "fchownat")})
    # These calls have no effect but report success, because shutil.copy fails if they fail.
    decisions.update({name: SILENT for name in ("chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes", "futimesat", "utimensat")})
    decisions["fallocate"] = EOPNOTSUPP  # it would allocate gigabytes between two looks; the C library then writes the bytes instead
    only_itself = ([(EPERM, 0, ANY, "ne", OWN_PID)], ALLOW)
    decisions.update({name: only_itself for name in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")})
    cases, otherwise = decisions["clone"]
    decisions["clone"] = ([*cases, (EPERM, 0, CLONE_THREAD, "eq", 0)], otherwise)
    # Landlock below ABI 3 does not see truncation.
    decisions["open"] = ([(EPERM, 1, O_ACCMODE | O_TRUNC, "eq", O_TRUNC)], ALLOW)
    decisions["openat"] = ([(EPERM, 2, O_ACCMODE | O_TRUNC, "eq", O_TRUNC)], ALLOW)
    return decisions


def _any_of(values, argument, decision=ALLOW):
    return [(decision, argument, ANY, "eq", value) for value in values]


LOAD, JUMP, JUMP_EQUAL, JUMP_GREATER_OR_EQUAL, AND, RETURN = 0x20, 0x05, 0x15, 0x35, 0x54, 0x06


def assemble(decisions, machine=MACHINE):
    """Returns the filter's instructions as bytes (struct sock_filter[])."""
    numbers = numbers_of(machine)
    decided = {numbers[name]: decision for name, decision in decisions.items() if name in numbers}
    runs = [(number, decided.get(number, ENOSYS)) for number in range(max(decided) + 2)]
    runs = [run for before, run in zip([None, *runs], runs) if before is None or before[1] != run[1]]
    code = [(LOAD, 0, 0, 4), (JUMP_EQUAL, 1, 0, AUDIT_ARCH[machine]), (RETURN, 0, 0, RETURN_KILL), (LOAD, 0, 0, 0)]
    if machine == "x86_64":
        code += [(JUMP_GREATER_OR_EQUAL, 0, 1, X32_BIT), _return(ENOSYS)]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in [*code, *_search(runs)])


def _search(runs):
    """Returns a binary search for a call's decision. `runs`: (first number, decision), each up to the next run. The kernel runs a new
    filter once for every number: with a linear search that took 2 ms."""
    if len(runs) == 1:
        decision = runs[0][1]
        return _block(*decision) if isinstance(decision, tuple) else [_return(decision)]
    half = len(runs) // 2
    below = _search(runs[:half])
    return [(JUMP_GREATER_OR_EQUAL, 0, 1, runs[half][0]), (JUMP, 0, 0, len(below)), *below, *_search(runs[half:])]


def _block(cases, otherwise):
    """Returns the instructions that decide for one call."""
    block = []
    for decision, argument, mask, relation, value in cases:
        # Only the low half: the kernel itself reads these arguments as 32 bits.
        applies = (JUMP_EQUAL, 0, 1, value) if relation == "eq" else (JUMP_EQUAL, 1, 0, value)
        block += [(LOAD, 0, 0, 16 + 8 * argument), (AND, 0, 0, mask), applies, _return(decision)]
    return [*block, _return(otherwise)]


def _return(decision):
    return (RETURN, 0, 0, RETURN_ALLOW if decision == ALLOW else RETURN_ERRNO | decision)


def install(code, pid):
    """Applies the filter to the calling thread, for good. Needs `no_new_privs`."""
    code = code.replace(struct.pack("<I", OWN_PID), struct.pack("<I", pid))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    pointer = ctypes.create_string_buffer(program, len(program))
    seccomp_mode_filter = 2
    check(libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(seccomp_mode_filter), pointer, 0, 0), "seccomp")
