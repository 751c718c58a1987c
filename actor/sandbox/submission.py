"""Opens a program's submission safely: no link leads to another file."""

import errno
import os
import stat

NAME = "submission.csv"


def open_submission(directory, limit_bytes):
    """Returns (descriptor, bytes, None), (None, 0, why it is refused), or (None, 0, None) if there is none.

    `directory`: descriptor of the scratch directory, all of whose processes are dead. The checks apply to the open file: a link is not
    followed, a FIFO does not block, and a hard link to another file is refused.
    """
    try:
        descriptor = os.open(NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return None, 0, None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None, 0, "symbolic link"
        return None, 0, "cannot be opened: " + os.strerror(error.errno)
    found = os.fstat(descriptor)
    refused = None
    if stat.S_ISDIR(found.st_mode):
        refused = "directory"
    elif not stat.S_ISREG(found.st_mode):
        refused = "not a regular file"
    elif found.st_nlink != 1:
        refused = "hard link"
    elif found.st_size > limit_bytes:
        refused = f"{found.st_size} bytes, and {limit_bytes} are allowed"
    if refused:
        os.close(descriptor)
        return None, 0, refused
    return descriptor, found.st_size, None
