"""Opens a program's submission safely: no link leads to another file."""

import errno
import os
import stat

import program

NAME = "submission.csv"
MOST_NAMES = 8  # names of files that are reported if there is no submission
MOST_ENTRIES = 1000  # entries of directories that are read for that
MOST_LEVELS = 4
LONGEST_NAME = 100  # characters


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


def files_left(directory):
    """Returns the paths of up to MOST_NAMES files that the program left in its scratch directory, first those that look most like a
    submission. Looks at the first MOST_ENTRIES entries and MOST_LEVELS levels; follows no link."""
    found, entries = [], 0
    waiting = [(os.dup(directory), "")]
    while waiting:
        descriptor, above = waiting.pop(0)
        try:
            for entry in os.scandir(descriptor):
                entries += 1
                if entries > MOST_ENTRIES:
                    break
                path = above + entry.name
                if path in ("input", program.NAME):
                    continue
                if entry.is_file(follow_symlinks=False):
                    found.append(path)
                elif entry.is_dir(follow_symlinks=False) and path.count("/") < MOST_LEVELS - 1 and len(waiting) < MOST_ENTRIES // 10:
                    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                    waiting.append((os.open(entry.name, flags, dir_fd=descriptor), path + "/"))
        except OSError:
            pass  # not readable
        finally:
            os.close(descriptor)
    found.sort(key=lambda path: (not path.lower().endswith(".csv"), "sub" not in path.lower(), path))
    return [path[:LONGEST_NAME].encode("utf-8", "replace").decode() for path in found[:MOST_NAMES]]
