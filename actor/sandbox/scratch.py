"""Holds what a program writes to its limit, where its directories have no size of their own (at `namespaces` a tmpfs has).

Counting files takes long; to ask the file system how full it is takes microseconds. So that is asked often, and files are counted
where the program could be over its limit by that, while it is stopped for these milliseconds; and every SLOW_WATCH_SECONDS or less often,
while it runs: what others delete would hide what it writes.
Covered: files in directories that cannot be listed (over the limit), that were deleted and are still open, or are still mapped (over
the limit: nothing tells their size).
Not covered: what is written between two looks, and where the kernel counts by itself (tmpfs, project quotas) only that it does.
"""

import os
import signal
import time

import watch
from limits import COUNTING_SHARE, DISK_WATCH_SECONDS, HASTY_DISK_WATCH_SECONDS, HASTY_SECONDS, HASTY_SHARE, SLOW_WATCH_SECONDS, STOP_SECONDS

FULL_DISK_BYTES = 1 << 20  # with less than this free, a disk is full


class Scratch:
    """`directories`: descriptors of those that the program may write to. `usage`: a watch.Usage of the program, `pidfd` its process."""

    def __init__(self, directories, limits, usage, pidfd):
        self._directories, self._usage, self._pidfd = directories, usage, pidfd
        self._most = limits["scratchBytes"], limits["scratchFiles"]
        self._used = self._others = self._used_of_disk()
        self._hasty_until = self._next_count = self.next_look = 0

    def look(self, now):
        """Whether the program has more bytes or files than allowed, as far as could be seen. Sets `next_look`."""
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
        """Whether the disk has taken so much since files were counted."""
        return any(used - others > most for used, others, most in zip(self._used_of_disk(), self._others, self._most))

    def _is_full(self, is_pointless=lambda: False, stands_still=False):
        """Counts. `is_pointless`: it will be done again, more carefully. `stands_still`: nothing can be moved to where it was counted
        already, or from where it was not yet."""
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
        """Whether it does nothing any more; not if it waits in the kernel for longer than STOP_SECONDS."""
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            if os.waitid(os.P_PIDFD, self._pidfd, os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return True
            time.sleep(STOP_SECONDS / 25)
        return False

    def _used_of_disk(self):
        """(bytes, files) that the file system has, whoever wrote them. Some file systems do not count files."""
        found = os.fstatvfs(self._directories[0])
        return (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_files - found.f_ffree

    def is_disk_full(self):
        """Whether the disk has no room, and not because of this program: then it is not to blame for what it could not write."""
        found = os.fstatvfs(self._directories[0])
        return found.f_bavail * found.f_frsize < FULL_DISK_BYTES and not self._is_full()
