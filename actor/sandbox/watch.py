"""Measures what an execution uses, from the zygote: memory, processes, processor time, files. limits.py has the limits."""

import os
import stat

from limits import FEW_OPEN_FILES, PIPE_BYTES, SOCKET_BYTES

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
DEEPEST = 64  # levels of directories
ASK_AFTER_FILES = 256
MOST_OF_LOCKS = 256 << 10  # bytes, about 4,000 locks
MOST_OF_SOCKETS = 1 << 20  # bytes, about 16,000 sockets


def own_bytes(proc):
    """Returns (address space, resident memory) of this process, in bytes."""
    with open(f"{proc}/self/statm", "rb") as file:
        fields = file.read().split()
    return int(fields[0]) * PAGE_BYTES, int(fields[1]) * PAGE_BYTES


def inherited_bytes(proc):
    """Returns the resident memory that a fork of this process starts with: less than this process's own, because a fork maps no pages of
    files."""
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
    """Returns (resident memory, its part that is shared with files or other processes) of the process behind a /proc/<pid> directory."""
    with open(f"{directory}/statm", "rb") as file:
        fields = file.read().split()
    return int(fields[1]) * PAGE_BYTES, int(fields[2]) * PAGE_BYTES


class Usage:
    """Measures a program repeatedly: the process `pid` in the mount `proc`, with all its descendants.

    The program's own process shares `inherited_bytes` with the zygote, which do not count. The program is process 1 of its namespace and
    adopts orphans, so no process is missed.
    """

    def __init__(self, proc, pid, inherited_bytes, own_network=False):
        self.proc, self.pid, self.inherited_bytes, self.own_network = proc, pid, inherited_bytes, own_network
        self.memory_bytes = self.tasks = self.open_files = 0
        self._pids = []
        self._kernel_bytes = 0
        self._ticks = {}  # by process, including ended ones: wait4 may omit processes that nobody waited for

    @property
    def cpu_seconds(self):
        return sum(self._ticks.values()) / TICKS_PER_SECOND

    def look(self, limit_bytes, thorough=True):
        """Updates `memory_bytes`, `tasks`, `open_files` and `cpu_seconds`. Measures memory that processes share only if it could put the
        program above `limit_bytes`, because that takes longer. `thorough`: examines descriptors even if their number has not changed."""
        memory = tasks = shared_bytes = open_files = 0
        waiting, self._pids = [self.pid], []
        while waiting:
            current = waiting.pop()
            directory = f"{self.proc}/{current}"
            try:
                resident, shared = resident_bytes(directory)
                if current == self.pid:
                    memory += max(0, resident - self.inherited_bytes)
                else:
                    memory += max(0, resident - shared)
                    shared_bytes += shared
                with open(f"{directory}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                self._ticks[current] = max(self._ticks.get(current, 0), int(fields[11]) + int(fields[12]))
                threads = os.listdir(f"{directory}/task")
                tasks += len(threads)
                open_files += len(os.listdir(f"{directory}/fd"))
                self._pids.append(current)
                for thread in threads:
                    with open(f"{directory}/task/{thread}/children", "rb") as file:
                        waiting.extend(int(child) for child in file.read().split())
            except (OSError, IndexError):
                continue  # the process ended meanwhile
        if shared_bytes and memory + shared_bytes > limit_bytes:
            memory += self._shared_by_descendants(limit_bytes - memory)
        if thorough or open_files > FEW_OPEN_FILES and open_files != self.open_files:
            self._renew_kernel_bytes(open_files)
        kernel_bytes = self._kernel_bytes + self._queued_bytes()
        self.memory_bytes, self.tasks, self.open_files = memory + kernel_bytes, tasks, open_files

    def _shared_by_descendants(self, free_bytes):
        """Returns the bytes of shared mappings (anonymous ones and files in memory) of the descendants, or 0 if they are below `free_bytes`
        even when each page counts for every process that has it."""
        at_most = sum(self._kilobytes(pid, "status", b"RssShmem:") for pid in self._pids if pid != self.pid)
        if at_most <= free_bytes:
            return 0
        # Divides a page among the processes that share it, which takes the kernel longer. The pages of the program's own process were
        # already counted whole.
        divided = sum(self._kilobytes(pid, "smaps_rollup", b"Pss_Shmem:") for pid in self._pids)
        return max(0, divided - self._kilobytes(self.pid, "status", b"RssShmem:"))

    def _kilobytes(self, pid, name, field):
        """Returns the value of a line `Field: 12 kB` of /proc/<pid>/<name>, in bytes, or 0 if the process has ended."""
        try:
            with open(f"{self.proc}/{pid}/{name}", "rb") as file:
                return next((int(line.split()[1]) * 1024 for line in file if line.startswith(field)), 0)
        except OSError:
            return 0

    def _renew_kernel_bytes(self, open_files):
        """Computes the most memory that the kernel may hold for the pipes and sockets. Each counts once, however many processes share it."""
        found = {}
        for pid in self._pids if open_files > FEW_OPEN_FILES else ():
            for _, target in self._descriptors(pid, os.readlink):
                size = PIPE_BYTES if target.startswith("pipe:") else SOCKET_BYTES if target.startswith("socket:") else 0
                if size:
                    found[target] = size
        self._kernel_bytes = sum(found.values())

    def _queued_bytes(self):
        """Returns the most memory that the kernel may hold for the program's unix sockets without a descriptor: connections that nobody has
        accepted. They change no number of open files, so each look counts them: a program can fill megabytes of them in a millisecond."""
        if not self.own_network:
            return 0
        try:
            with open(f"{self.proc}/{self.pid}/net/unix", "rb") as table:
                # Flags, Type, St (2: connecting), Inode (0: no descriptor); a queued connection has inode 0.
                lines = table.read(MOST_OF_SOCKETS).splitlines()[1:]
        except OSError:
            return 0
        queued = sum(1 for line in lines if len(fields := line.split()) > 6 and fields[6] == b"0")
        return queued * SOCKET_BYTES if queued > FEW_OPEN_FILES else 0

    def _descriptors(self, pid, look):
        """Yields (number, look(its entry)) of a process's open descriptors."""
        directory = f"{self.proc}/{pid}/fd"
        try:
            for number in os.listdir(directory):
                try:
                    yield number, look(f"{directory}/{number}")
                except OSError:
                    continue  # closed meanwhile
        except OSError:
            return  # the process ended

    def deleted_bytes(self, device):
        """Returns the bytes of deleted files on `device` that are still open. Returns None if a deleted file is only mapped: its
        size is unknown."""
        found = {}
        opened = set()
        for pid in self._pids:
            for _, file in self._descriptors(pid, os.stat):
                if file.st_dev != device:
                    continue  # pipes and sockets have inode numbers too, and a program could make one with a chosen number by trying
                opened.add(file.st_ino)
                if file.st_nlink == 0:
                    found[file.st_ino] = file.st_blocks * 512
        for pid in self._pids:
            if self._maps_deleted(pid, opened):
                return None
        return sum(found.values())

    def _maps_deleted(self, pid, opened):
        try:
            with open(f"{self.proc}/{pid}/maps", "rb") as table:
                for line in table:
                    # Memory that processes share has such a name as well, but counts as memory.
                    if line.endswith(b" (deleted)\n") and not line.endswith(b" /dev/zero (deleted)\n") and int(line.split(None, 5)[4]) not in opened:
                        return True
        except OSError:
            pass  # the process ended
        return False

    def record_locks(self):
        """Returns how many `fcntl` locks all processes hold together, counted in the first MOST_OF_LOCKS bytes of /proc/locks."""
        own = {str(pid).encode() for pid in self._pids}
        try:
            with open(f"{self.proc}/locks", "rb") as table:
                lines = table.read(MOST_OF_LOCKS).splitlines()
        except OSError:
            return 0
        return sum(1 for line in lines if len(fields := line.split()) > 4 and fields[4] in own)


def files_below(directory, limit_files, is_pointless=lambda: False):
    """Returns (files, bytes) below an open directory. Follows no link. Stops early above `limit_files`, or once `is_pointless`
    (called every ASK_AFTER_FILES files) returns True. A tree deeper than DEEPEST, or a directory that cannot be read, counts as over the
    limit. At most one descriptor for each level is open."""
    files = bytes_ = 0
    levels = [(os.dup(directory), None)]  # (a directory, names in it that are still to be examined)
    try:
        while levels:
            descriptor, names = levels[-1]
            if names is None:
                names = []
                levels[-1] = (descriptor, names)
                for entry in os.scandir(descriptor):
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue  # deleted meanwhile
                    files += 1
                    bytes_ += found.st_blocks * 512
                    if files > limit_files or files % ASK_AFTER_FILES == 0 and is_pointless():
                        return files, bytes_
                    if stat.S_ISDIR(found.st_mode):
                        names.append(entry.name)
            elif not names:
                os.close(levels.pop()[0])
            elif len(levels) > DEEPEST:
                return limit_files + 1, bytes_
            else:
                try:
                    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                    levels.append((os.open(names.pop(), flags, dir_fd=descriptor), None))
                except PermissionError:
                    return limit_files + 1, bytes_
                except OSError:
                    continue  # deleted meanwhile, or replaced
    finally:
        for descriptor, _ in levels:
            os.close(descriptor)
    return files, bytes_


def empty(directory):
    """Removes everything below an open directory, of any depth. A directory that is not empty is moved up and emptied there, so three
    descriptors and no recursion are enough (fs.rm and rmtree crash on deep trees)."""
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
