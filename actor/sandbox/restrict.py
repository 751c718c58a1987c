"""Takes from a forked child everything that a hostile program must not have. Threat model of the sandbox.

Covered, at both levels: reading or changing files other than the runtime, the public data and the scratch directory;
any network, unix sockets included; signals, ptrace, memory of processes outside; capabilities, setuid programs, new
namespaces; kernel interfaces that programs do not need (bpf, io_uring, keyctl, mounts, SysV IPC, …); outliving the
execution. What a program may use is held by limits.py.
Covered only by `namespaces`: that names, sizes and modification times of files can be asked for (`stat` is not
Landlock's business), and processes beside the program's own, which there is none of at `landlock`.
Not covered: faults of the kernel itself; how fast caches and disks answer (side channels); a machine that is slower for others
while a program works. Where that matters use one machine, or a virtual machine (`runtimeClassName`), per tenant.
"""

import os
import signal

import landlock
import seccomp
from linux import PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, drop_capabilities, prctl

LEVELS = ("namespaces", "landlock", "none")


def die_with_parent():
    """SIGKILL for us as soon as the parent is gone. The kernel forgets it whenever the user or capabilities change."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def become(user, group):
    """Another user for good, without groups."""
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)


def drop_privileges():
    drop_capabilities()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    # So that the zygote sees its descriptors and what it shares (watch.py); a change of user takes that away. Nobody
    # else gains: other programs cannot name it, ptrace and process_vm_* are denied, and limits.CORE_BYTES ends dumps.
    prctl(PR_SET_DUMPABLE, 1)
    die_with_parent()


def confine(landlock_version, readable, writable, devices, filter_code):
    """Landlock where the kernel has it, then seccomp, always last: it denies what the steps before need."""
    if landlock_version > 0:
        landlock.restrict(landlock_version, readable, writable, devices)
    seccomp.install(filter_code, os.getpid())
