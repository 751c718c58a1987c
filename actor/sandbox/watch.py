"""What an execution uses, seen from the zygote: memory, processes, processor time, files."""

import os

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
DEEPEST = 64  # directories below one another


def own_bytes(proc):
    """(address space, resident) of this process."""
    with open(f"{proc}/self/statm", "rb") as file:
        fields = file.read().split()
    return int(fields[0]) * PAGE_BYTES, int(fields[1]) * PAGE_BYTES


def inherited_bytes(proc):
    """Resident memory that a fork of this process starts with: less than its own, as pages of files are not mapped."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write_end, b"%d" % resident_bytes(f"{proc}/self")[0])
        finally:
            os._exit(0)
    os.close(write_end)
    try:
        return int(os.read(read_end, 32))
    finally:
        os.close(read_end)
        os.waitpid(pid, 0)


def resident_bytes(directory):
    """(resident, of it shared with files or others) of the process behind a /proc/<pid> directory."""
    with open(f"{directory}/statm", "rb") as file:
        fields = file.read().split()
    return int(fields[1]) * PAGE_BYTES, int(fields[2]) * PAGE_BYTES


def usage(proc, pid, inherited_bytes):
    """(memory in bytes, tasks, cpu seconds) of the process `pid` in the mount `proc`, with all its descendants.

    The program's own process shares `inherited_bytes` with the zygote, which are not its fault. Of its descendants
    only memory that is theirs alone counts. Orphans are adopted by the program itself, process 1 of its namespace, so
    that nothing is missed.
    """
    memory = tasks = ticks = 0
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        directory = f"{proc}/{current}"
        try:
            resident, shared = resident_bytes(directory)
            memory += max(0, resident - inherited_bytes) if current == pid else max(0, resident - shared)
            with open(f"{directory}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            threads = os.listdir(f"{directory}/task")
            tasks += len(threads)
            for thread in threads:
                with open(f"{directory}/task/{thread}/children", "rb") as file:
                    waiting.extend(int(child) for child in file.read().split())
        except (OSError, IndexError):
            continue  # it ended while we looked
    return memory, tasks, ticks / TICKS_PER_SECOND


def files_below(directory, limit_files):
    """(files, bytes) below an open directory, no link followed; stops counting above `limit_files`. A tree deeper
    than DEEPEST counts as over the limit."""
    files = bytes_ = 0
    waiting = [(os.dup(directory), 0)]
    try:
        while waiting:
            descriptor, depth = waiting.pop()
            try:
                for entry in os.scandir(descriptor):
                    try:
                        found = entry.stat(follow_symlinks=False)
                        files += 1
                        bytes_ += found.st_blocks * 512
                        if files > limit_files or depth > DEEPEST:
                            return limit_files + 1, bytes_
                        if entry.is_dir(follow_symlinks=False):
                            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                            waiting.append((os.open(entry.name, flags, dir_fd=descriptor), depth + 1))
                    except OSError:
                        continue
            finally:
                os.close(descriptor)
    finally:
        for descriptor, _ in waiting:
            os.close(descriptor)
    return files, bytes_


def empty(directory):
    """Removes everything below an open directory. Trees of any depth: a directory that is not empty is moved up and
    emptied there, so that three descriptors and no recursion are enough (fs.rm and rmtree crash on deep trees)."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    moved = 0
    while True:
        names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in os.scandir(directory)]
        if not names:
            return
        for name, is_directory in names:
            if not is_directory:
                os.unlink(name, dir_fd=directory)
                continue
            os.chmod(name, 0o700, dir_fd=directory)
            try:
                os.rmdir(name, dir_fd=directory)
                continue
            except OSError:
                inner = os.open(name, flags, dir_fd=directory)
            try:
                for entry in os.scandir(inner):
                    if entry.is_dir(follow_symlinks=False):
                        moved += 1
                        os.chmod(entry.name, 0o700, dir_fd=inner)
                        os.rename(entry.name, f".{moved}.{os.getpid()}.moved", src_dir_fd=inner, dst_dir_fd=directory)
                    else:
                        os.unlink(entry.name, dir_fd=inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=directory)
