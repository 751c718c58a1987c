"""Enforces a program's limits on bytes and files in directories that have no size of their own. (A tmpfs, as at `namespaces`, has one:
the kernel enforces it.)

Counting files is slow. Asking the file system how full it is takes microseconds, so the watch asks often. If the answer allows that the
program is over its limit, the watch stops the program for some milliseconds and counts its files. It also counts every
SLOW_WATCH_SECONDS or less often while the program runs, because files that other processes delete would hide the program's writes.

Covered: deleted files that are still open. A directory that cannot be listed, and a deleted file that is still mapped, put the program
over its limit, because their size is unknown.
Not covered: bytes that are written between two looks.
"""

import os
import signal
import time

import watch
from limits import COUNTING_SHARE, DISK_WATCH_SECONDS, HASTY_DISK_WATCH_SECONDS, HASTY_SECONDS, HASTY_SHARE, SLOW_WATCH_SECONDS, STOP_SECONDS

FULL_DISK_BYTES = 1 << 20  # with less than this free, a disk is full
PROGRAM = "program.py"


def _size_of(name, directory):
    """Returns (bytes on the disk, 1) of a file in a directory (a descriptor), or (0, 0) without the file."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_blocks * 512, 1
    except OSError:
        return 0, 0


class Scratch:
    """`directories`: descriptors of the directories that the program may write to. `usage`: its watch.Usage. `pidfd`: its process."""

    def __init__(self, directories, limits, usage, pidfd):
        self._directories, self._usage, self._pidfd = directories, usage, pidfd
        # The program's own text is there already.
        text_bytes, text_files = _size_of(PROGRAM, directories[0])
        self._most = limits["scratchBytes"] + text_bytes, limits["scratchFiles"] + text_files
        self._used = self._others = self._used_of_disk()
        self._hasty_until = self._next_count = self.next_look = 0

    def look(self, now):
        """Returns whether the program was seen to have more bytes or files than allowed. Sets `next_look`, the time of the next call."""
        before, self._used = self._used, self._used_of_disk()
        if any(used - old > most * HASTY_SHARE for used, old, most in zip(self._used, before, self._most)):
            self._hasty_until = now + HASTY_SECONDS
        self.next_look = now + (HASTY_DISK_WATCH_SECONDS if now < self._hasty_until else DISK_WATCH_SECONDS)
        is_full = now >= self._next_count and self._is_full(self._may_be_full)
        if not is_full and self._may_be_full():
            signal.pidfd_send_signal(self._pidfd, signal.SIGSTOP)
            try:
                is_full = self._is_full(stands_still=self._has_stopped())
            finally:
                signal.pidfd_send_signal(self._pidfd, signal.SIGCONT)
        return is_full

    def _may_be_full(self):
        """Returns whether the disk's use has grown by more than a limit since the last count."""
        return any(used - others > most for used, others, most in zip(self._used_of_disk(), self._others, self._most))

    def _is_full(self, is_pointless=lambda: False, stands_still=False):
        """Counts bytes and files. Returns whether they exceed a limit. `is_pointless`: returns whether a count may end early, because a more
        careful one follows. `stands_still`: the program is stopped, so it can move no file past the count."""
        began, used = time.monotonic(), self._used_of_disk()
        files, bytes_ = 0, self._usage.deleted_bytes(os.fstat(self._directories[0]).st_dev)
        if bytes_ is None:
            return True
        for directory in self._directories:
            files_here, bytes_here = watch.files_below(directory, self._most[1], is_pointless)
            files, bytes_ = files + files_here, bytes_ + bytes_here
        others = used[0] - bytes_, used[1] - files
        self._others = others if stands_still else tuple(map(min, others, self._others))
        now = time.monotonic()
        self._next_count = now + max(SLOW_WATCH_SECONDS, (now - began) / COUNTING_SHARE)
        return bytes_ > self._most[0] or files > self._most[1]

    def _has_stopped(self):
        """Returns whether the program has stopped or ended within STOP_SECONDS. A program that waits in the kernel may not."""
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            if os.waitid(os.P_PIDFD, self._pidfd, os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return True
            time.sleep(STOP_SECONDS / 25)
        return False

    def _used_of_disk(self):
        """Returns (bytes, files) in use on the file system, by every writer. Some file systems count no files."""
        found = os.fstatvfs(self._directories[0])
        return (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_files - found.f_ffree

    def is_disk_full(self):
        """Returns whether the disk is full for another reason than this program, which is then not blamed for failed writes."""
        found = os.fstatvfs(self._directories[0])
        return found.f_bavail * found.f_frsize < FULL_DISK_BYTES and not self._is_full()
