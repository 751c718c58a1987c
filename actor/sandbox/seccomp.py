"""Assembles the seccomp filter: which system calls a program may not make, for x86_64 and aarch64.

A list of denials and not of permissions: numerical libraries use much and change often, and a filter is the last of
several layers here. What it has to hold alone (no network namespace, no PID namespace, old Landlock) is in
`alone()`. A denied call answers EPERM, or ENOSYS where the C library then takes another way.
"""

import ctypes
import struct

from linux import CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER
from linux import CLONE_NEWUTS, CLONE_THREAD, MACHINE, PR_SET_SECCOMP, check, libc

EPERM, ENOSYS = 1, 38
ALLOW, KILL_PROCESS, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000

# name: (x86_64, aarch64); None where the machine does not have it. Above 424 the numbers are the same everywhere.
NUMBERS = {
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "creat": (85, None), "truncate": (76, 45),
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "accept": (43, 202), "accept4": (288, 242),
    "bind": (49, 200), "listen": (50, 201), "ioctl": (16, 29), "fcntl": (72, 25), "prctl": (157, 167),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "perf_event_open": (298, 241),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "statmount": (457, 457), "listmount": (458, 458), "open_tree_attr": (467, 467),
    "bpf": (321, 280), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_setup": (206, 0), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183), "mq_notify": (244, 184), "mq_getsetattr": (245, 185),
    "mknod": (133, None), "mknodat": (259, 33), "userfaultfd": (323, 282), "memfd_create": (319, 279),
    "memfd_secret": (447, 447), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "inotify_init": (253, None), "inotify_init1": (294, 26),
    "move_pages": (279, 239), "migrate_pages": (256, 238), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
    "modify_ldt": (154, None), "syslog": (103, 116), "vhangup": (153, 58), "personality": (135, 92),
    "uselib": (134, None), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "prlimit64": (302, 261), "clone": (56, 220), "clone3": (435, 435), "fork": (57, None), "vfork": (58, None),
    "execve": (59, 221), "execveat": (322, 281), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "setpgid": (109, 154),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "setxattrat": (463, 463), "removexattrat": (466, 466),
}

DENIED = """
    socket connect accept accept4 bind listen
    ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd pidfd_open pidfd_send_signal process_madvise
    process_mrelease perf_event_open
    mount umount2 pivot_root chroot unshare setns open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr
    statmount listmount open_tree_attr
    bpf io_uring_setup io_uring_enter io_uring_register io_setup keyctl add_key request_key
    shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl
    mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
    mknod mknodat userfaultfd memfd_secret name_to_handle_at open_by_handle_at
    fanotify_init fanotify_mark inotify_init inotify_init1 move_pages migrate_pages
    kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl quotactl_fd
    settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname iopl ioperm modify_ldt syslog vhangup
    personality uselib sched_setaffinity sched_setscheduler sched_setparam sched_setattr setpriority ioprio_set
""".split()

NAMESPACES = (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID
              | CLONE_NEWNET)
AF_UNIX, SOCK_STREAM = 1, 1
TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP = 0x5412, 0x541C, 0x8901, 0x8902
FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR = 0x40086602, 0x401C5820
F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY = 8, 10, 15, 1024, 1026
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_MM, PR_SET_CHILD_SUBREAPER, PR_SET_PTRACER = 1, 4, 35, 36, 0x59616D61
O_ACCMODE, O_TRUNC = 3, 0o1000
ANY = 0xFFFFFFFF
OWN_PID = 0x5EC0DE1F  # stands for the program's process id until `install` knows it


def everywhere():
    """Rules (name, action, condition): at every level. A condition is (argument, mask, 'eq' or 'ne', value)."""
    rules = [(name, EPERM, None) for name in DENIED]
    # memfd: memory that no limit of ours sees. clone3: its flags lie behind a pointer, out of a filter's sight.
    rules += [("memfd_create", ENOSYS, None), ("clone3", ENOSYS, None)]
    rules += [("clone", EPERM, (0, NAMESPACES, "ne", 0))]
    # A pair of connected stream sockets reaches nobody, and asyncio and multiprocessing need it. Datagram pairs
    # could still send to any address.
    rules += [("socketpair", EPERM, (0, ANY, "ne", AF_UNIX)), ("socketpair", EPERM, (1, 0xF, "ne", SOCK_STREAM))]
    rules += [("ioctl", EPERM, (1, ANY, "eq", request)) for request in (TIOCSTI, TIOCLINUX)]
    options = (PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_MM, PR_SET_CHILD_SUBREAPER, PR_SET_PTRACER)
    rules += [("prctl", EPERM, (0, ANY, "eq", option)) for option in options]
    rules += [("prlimit64", EPERM, (0, ANY, "ne", 0))]
    # A lease on a file of one's own lets everybody who opens it wait, 45 s each time.
    rules += [("fcntl", EPERM, (1, ANY, "eq", F_SETLEASE))]
    return rules


def alone():
    """Further rules where there are no namespaces: nothing but one process, which signals nobody but itself, and
    none of the ways to change a file's metadata, which Landlock does not see and the user's own files would allow."""
    rules = [(name, EPERM, None) for name in ("fork", "vfork", "execve", "execveat", "setpgid")]
    rules += [("clone", EPERM, (0, CLONE_THREAD, "eq", 0))]
    rules += [(name, EPERM, (0, ANY, "ne", OWN_PID)) for name in ("kill", "tgkill", "rt_sigqueueinfo")]
    rules += [("tkill", EPERM, None), ("rt_tgsigqueueinfo", EPERM, (0, ANY, "ne", OWN_PID))]
    rules += [("fcntl", EPERM, (1, ANY, "eq", command)) for command in (F_SETOWN, F_SETSIG, F_SETOWN_EX, F_NOTIFY)]
    rules += [("ioctl", EPERM, (1, ANY, "eq", request))
              for request in (FIOSETOWN, SIOCSPGRP, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR)]
    # Silently without effect (errno 0), because shutil.copy fails where these do.
    rules += [(name, 0, None) for name in ("chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes", "futimesat", "utimensat")]
    rules += [(name, EPERM, None) for name in ("chown", "fchown", "lchown", "fchownat", "setxattr", "lsetxattr",
              "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "setxattrat", "removexattrat")]
    # Landlock below ABI 3 does not see truncation.
    rules += [("truncate", EPERM, None), ("openat2", ENOSYS, None)]
    rules += [("open", EPERM, (1, O_ACCMODE | O_TRUNC, "eq", O_TRUNC)), ("openat", EPERM, (2, O_ACCMODE | O_TRUNC, "eq", O_TRUNC))]
    return rules


def assemble(rules, machine=MACHINE):
    """The filter's instructions as bytes (struct sock_filter[])."""
    load, jump_equal, jump_greater_or_equal, and_, ret = 0x20, 0x15, 0x35, 0x54, 0x06
    column = 0 if machine == "x86_64" else 1
    code = [(load, 0, 0, 4), (jump_equal, 1, 0, AUDIT_ARCH[machine]), (ret, 0, 0, KILL_PROCESS), (load, 0, 0, 0)]
    if machine == "x86_64":
        code += [(jump_greater_or_equal, 0, 1, X32_BIT), (ret, 0, 0, ERRNO | ENOSYS)]
    for name, errno, condition in rules:
        number = NUMBERS[name][column]
        if number is None:
            continue
        action = (ret, 0, 0, ERRNO | errno)
        if condition is None:
            code += [(jump_equal, 0, 1, number), action]
            continue
        argument, mask, relation, value = condition
        # Only the low half: the kernel itself reads these arguments as 32 bits.
        test = (jump_equal, 0, 1, value) if relation == "eq" else (jump_equal, 1, 0, value)
        code += [(jump_equal, 0, 5, number), (load, 0, 0, 16 + 8 * argument), (and_, 0, 0, mask), test, action, (load, 0, 0, 0)]
    code.append((ret, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)


def install(code, pid):
    """Puts the filter over the calling thread, for good. Needs `no_new_privs`."""
    code = code.replace(struct.pack("<I", OWN_PID), struct.pack("<I", pid))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    pointer = ctypes.create_string_buffer(program, len(program))
    seccomp_mode_filter = 2
    check(libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(seccomp_mode_filter), pointer, 0, 0), "seccomp")
