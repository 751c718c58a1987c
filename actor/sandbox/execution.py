"""One execution, from the child's start to the submission: passes on what it prints, watches its limits."""

import os
import select
import signal
import sys
import time

import watch
from limits import HASTY_SHARE, HASTY_WATCH_SECONDS, OPEN_FILES_OF_ALL, RECORD_LOCKS, SLOW_WATCH_SECONDS, WATCH_SECONDS
from output import Output
from protocol import CONTROL, LARGEST_FRAME, announce, receive_frame, send, send_json
from submission import open_submission

PROGRESS_SECONDS = 0.5
LARGEST_REPORT = 4096
FULL_DISK_BYTES = 1 << 20  # with less than this free, a disk is full


class Execution:
    def __init__(self, zygote, child, request):
        self.zygote = zygote
        self.child = child
        self.limits = request["limits"]
        self.peak_bytes = 0
        self.killed_for = None
        watched_pid, self.scratch = child.start(request)
        self.usage = watch.Usage(zygote.proc, watched_pid, zygote.inherited_bytes)
        # A tmpfs has a size; directories have to be counted.
        self.counted = [] if zygote.level == "namespaces" else [self.scratch, os.open(f"{zygote.space}/tmp", os.O_RDONLY | os.O_DIRECTORY)]
        self.disk_used = self.disk_counted = used_of_disk(self.scratch)
        self.started = time.monotonic()
        send(b"S")
        child.begin()

    def follow(self):
        """Passes on output and watches limits until the program is dead and reaped."""
        output = Output(self.child.output, self.zygote.output_buffer)
        poll = select.poll()
        poll.register(self.child.pidfd, select.POLLIN)
        next_look = last_progress = self.last_slow = self.started
        while True:
            output.register(poll)
            ready = dict(poll.poll(max(0, next_look - time.monotonic()) * 1000))
            if ready.get(CONTROL, 0) & ~select.POLLOUT:
                kind, _ = receive_frame()
                if kind == b"K":
                    self.kill()
            output.move(ready)
            if self.child.pidfd in ready:
                break
            now = time.monotonic()
            if now < next_look:
                continue
            next_look = now + (HASTY_WATCH_SECONDS if self.look(now) else WATCH_SECONDS)
            if now - last_progress >= PROGRESS_SECONDS and output.idle:
                send_json(b"P", {"cpuSeconds": self.usage.cpu_seconds, "memoryBytes": self.usage.memory_bytes})
                last_progress = now
        _, status, used = os.wait4(self.child.pid, 0)
        if self.zygote.level == "none":
            try:
                os.killpg(self.child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        code = os.waitstatus_to_exitcode(status)
        # Not by this program, which kept to its limit: then it is not to blame for what it could not write.
        disk_full = code != 0 and bool(self.counted) and free_bytes(self.scratch) < FULL_DISK_BYTES and not self.is_scratch_full()
        peak_bytes = max(self.peak_bytes, used.ru_maxrss * 1024 - self.zygote.inherited_bytes)
        self.reaped = {
            "status": max(code, 0), "signal": max(-code, 0), "cpuSeconds": max(used.ru_utime + used.ru_stime, self.usage.cpu_seconds),
            "peakMemoryBytes": max(peak_bytes, 0), "killedFor": self.killed_for, "diskFull": disk_full, "seconds": time.monotonic() - self.started,
        }
        os.set_blocking(self.child.report, False)
        try:
            self.reaped["report"] = os.read(self.child.report, LARGEST_REPORT).decode("utf-8", "replace")
        except BlockingIOError:
            self.reaped["report"] = ""
        output.complete()
        send_json(b"X", self.reaped)
        output.finish()

    def look(self, now):
        """Kills the program where it is over a limit. Returns whether it comes near to one quickly."""
        usage, limits, slow = self.usage, self.limits, now - self.last_slow >= SLOW_WATCH_SECONDS
        memory_before = usage.memory_bytes
        usage.look(limits["memoryBytes"], slow)
        self.peak_bytes = max(self.peak_bytes, usage.memory_bytes)
        grows, may_be_full = self.disk_growth() if self.counted else (False, False)
        if usage.memory_bytes > limits["memoryBytes"]:
            self.kill("memory")
        elif usage.tasks > limits["processes"] + 1:
            self.kill("processes")
        elif usage.open_files > OPEN_FILES_OF_ALL:
            self.kill("openFiles")
        elif self.counted and (slow or may_be_full) and self.is_scratch_full():
            self.kill("scratch")
        elif slow and usage.record_locks() > RECORD_LOCKS:
            self.kill("locks")
        if slow:
            self.last_slow = now
        return grows or usage.memory_bytes - memory_before > limits["memoryBytes"] * HASTY_SHARE

    def disk_growth(self):
        """(whether the file system below scratch has filled quickly since the last look, whether that could be this program over its
        limit): asking the file system costs nothing, counting files does."""
        bytes_, files = used_of_disk(self.scratch)
        grows = bytes_ - self.disk_used[0] > self.limits["scratchBytes"] * HASTY_SHARE
        self.disk_used = bytes_, files
        return grows, (bytes_ - self.disk_counted[0] > self.limits["scratchBytes"]
                       or files - self.disk_counted[1] > self.limits["scratchFiles"])

    def is_scratch_full(self):
        """Whether there is more in scratch and $TMPDIR together than allowed."""
        disk_bytes, disk_files = used_of_disk(self.scratch)
        files = 0
        bytes_ = self.usage.deleted_bytes(os.fstat(self.scratch).st_dev)
        if bytes_ is None:
            return True
        for directory in self.counted:
            files_here, bytes_here = watch.files_below(directory, self.limits["scratchFiles"])
            files, bytes_ = files + files_here, bytes_ + bytes_here
        self.disk_counted = disk_bytes - bytes_, disk_files - files
        return files > self.limits["scratchFiles"] or bytes_ > self.limits["scratchBytes"]

    def kill(self, reason=None):
        """SIGKILL, at once: nothing else is worth trying on a program that may ignore it. In a PID namespace the
        kernel kills everything with its first process."""
        self.killed_for = self.killed_for or reason
        signal.pidfd_send_signal(self.child.pidfd, signal.SIGKILL)

    def hand_in(self):
        """The submission, as it is: it is read and judged by others."""
        descriptor, bytes_, refused = open_submission(self.scratch, self.limits["submissionBytes"])
        send_json(b"E", {"bytes": bytes_, "refused": refused, "present": descriptor is not None})
        if descriptor is not None:
            offset = 0
            while offset < bytes_:
                count = min(bytes_ - offset, LARGEST_FRAME)
                announce(b"D", count)
                while count > 0:
                    sent = os.sendfile(CONTROL, descriptor, offset, count)
                    if sent == 0:
                        sys.exit("the submission shrank while it was read")
                    offset += sent
                    count -= sent
            os.close(descriptor)
        for descriptor in (self.child.output, self.child.report, self.child.pidfd, self.scratch, *self.counted[1:]):
            os.close(descriptor)


def free_bytes(directory):
    found = os.fstatvfs(directory)
    return found.f_bavail * found.f_frsize


def used_of_disk(directory):
    """(bytes, files) that the file system has no more, whoever uses them. Some file systems do not count files."""
    found = os.fstatvfs(directory)
    return (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_files - found.f_ffree
