"""Removes everything from a forked child that a hostile program must not have. Threat model of the sandbox.

Covered, at both levels: reading or changing files other than the runtime, the public data and the scratch directory; any network, unix
sockets to other programs included; signals, ptrace, memory of processes outside; capabilities, setuid programs, new namespaces; kernel interfaces that
programs do not need (bpf, io_uring, keyctl, mounts, SysV IPC, …); outliving the execution. limits.py limits the resources of a program.
Covered only by `namespaces`: names, sizes and modification times of files (Landlock does not check `stat`), and several processes of one
program, which `landlock` does not allow.
Not covered: faults of the kernel itself; the response times of caches and disks (side channels); a program that slows the machine down for
others. If these matter, use one machine or virtual machine (`runtimeClassName`) per tenant.
"""

import os
import signal

import landlock
import seccomp
from linux import PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, drop_capabilities, prctl

LEVELS = ("namespaces", "landlock", "none")


def die_with_parent():
    """Makes the kernel send SIGKILL to this process as soon as its parent ends. A change of user or capabilities cancels this."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def become(user, group):
    """Becomes another user for good, without groups."""
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)


def drop_privileges():
    drop_capabilities()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    # Lets the zygote see the process's descriptors and shared memory (watch.py), which a change of user prevents. Nobody else gains: other
    # programs cannot name the process, ptrace and process_vm_* are denied, and limits.CORE_BYTES prevents dumps.
    prctl(PR_SET_DUMPABLE, 1)
    die_with_parent()


def confine(landlock_version, readable, writable, devices, filter_code):
    """Applies Landlock if the kernel has it, then seccomp, which must be last because it denies calls that earlier steps need."""
    if landlock_version > 0:
        landlock.restrict(landlock_version, readable, writable, devices)
    seccomp.install(filter_code, os.getpid())
