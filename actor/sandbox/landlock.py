"""Landlock: which files a program may read and write, no TCP, no signals or abstract sockets to the outside.

Features by ABI: 1 files; 2 linking and renaming between directories; 3 truncation; 4 TCP; 5 ioctl on devices; 6 signals and abstract
sockets. seccomp covers the features that an older kernel lacks.
"""

import ctypes
import os
import struct

from linux import libc, syscall

CREATE, ADD_RULE, RESTRICT_SELF = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
READ = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV


def abi():
    """Returns the kernel's Landlock version, 0 without Landlock."""
    return max(0, libc.syscall(ctypes.c_long(CREATE), None, ctypes.c_size_t(0), ctypes.c_uint(1)))


def handled(version):
    """Returns (file rights, network rights, scopes) that a kernel of this version can restrict."""
    files = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}.get(version, (1 << 16) - 1)
    return files, 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0


def restrict(version, readable, writable, devices):
    """Restricts the calling thread for good to `readable` and `writable` paths (descriptors or names), and to `devices` with their ioctls."""
    files, network, scopes = handled(version)
    attributes = struct.pack("<QQQ", files, network, scopes)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = syscall(CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0), what="landlock_create_ruleset")
    for paths, rights in ((readable, READ), (writable, ~IOCTL_DEV), (devices, READ_FILE | WRITE_FILE | IOCTL_DEV)):
        for path in paths:
            _allow(ruleset, path, rights & files)
    syscall(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0), what="landlock_restrict_self")
    os.close(ruleset)


def _allow(ruleset, path, rights):
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.stat(descriptor).st_mode & 0o040000:  # S_IFDIR
        rights &= OF_FILES
    rule = struct.pack("<Qi", rights, descriptor)
    path_beneath = 1
    syscall(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(path_beneath), rule, ctypes.c_uint(0), what="landlock_add_rule")
    os.close(descriptor)
