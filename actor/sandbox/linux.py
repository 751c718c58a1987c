"""The few system calls that Python's standard library lacks, through ctypes. x86_64 and aarch64."""

import ctypes
import os
import platform

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_THREAD = 0x00010000
CLONE_FILES = 0x00000400

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_SECCOMP = 22
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

MACHINE = platform.machine()
_MOUNT_SETATTR = 442
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPSET = {"x86_64": 126, "aarch64": 91}


def check(result, what):
    """Returns `result`, or raises OSError with the C library's errno if it is -1. `what` names the call in the error."""
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number, *arguments, what):
    return check(libc.syscall(ctypes.c_long(number), *arguments), what)


def prctl(option, *arguments):
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    check(libc.prctl(option, *padded), f"prctl({option})")


def unshare(flags):
    check(libc.unshare(flags), f"unshare({flags:#x})")


def setns(descriptor, kind):
    check(libc.setns(descriptor, kind), "setns")


def mount(source, target, kind=None, flags=0, data=None):
    arguments = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    result = libc.mount(arguments[0], arguments[1], arguments[2], ctypes.c_ulong(flags), arguments[3])
    check(result, f"mount({target})")


def umount(target):
    check(libc.umount2(os.fsencode(target), MNT_DETACH), f"umount({target})")


def pivot_root(new_root, put_old):
    syscall(_PIVOT_ROOT[MACHINE], os.fsencode(new_root), os.fsencode(put_old), what="pivot_root")


def make_read_only(target):
    """Makes the mount at `target`, with every mount below it, read-only."""
    attributes = (ctypes.c_uint64 * 4)(0x1, 0, 0, 0)  # attr_set = MOUNT_ATTR_RDONLY
    at_fdcwd, at_recursive = -100, 0x8000
    try:
        syscall(_MOUNT_SETATTR, ctypes.c_int(at_fdcwd), os.fsencode(target), ctypes.c_uint(at_recursive),
                attributes, ctypes.c_size_t(32), what="mount_setattr")
        return
    except OSError:  # Linux < 5.12
        pass
    with open("/proc/self/mountinfo") as table:
        points = [line.split()[4].encode().decode("unicode_escape") for line in table]
    for point in points:
        if point == target or point.startswith(target + "/"):
            # A user namespace locks the flags that the mount had before, so a remount has to repeat them.
            found = os.statvfs(point).f_flag
            kept = found & (MS_NOSUID | MS_NODEV | MS_NOEXEC | 1024 | 2048 | 4096 << 9)
            mount(None, point, None, MS_REMOUNT | MS_BIND | MS_RDONLY | kept)


def drop_capabilities():
    """Gives up every capability in every set, for good: even an exec as uid 0 does not restore them."""
    number = 0
    while libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0) == 0:
        number += 1  # fails at the first capability that this kernel lacks, or at once without CAP_SETPCAP
    # NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE, each with its lock
    libc.prctl(PR_SET_SECUREBITS, ctypes.c_ulong(0b11101111), 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    syscall(_CAPSET[MACHINE], header, data, what="capset")
