"""One execution, from the child's start to the submission: passes on what it prints, watches its limits."""

import fcntl
import os
import select
import signal
import struct
import sys
import termios
import time

import watch
from limits import OPEN_FILES_OF_ALL, SLOW_WATCH_SECONDS, WATCH_SECONDS
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
        self.started = time.monotonic()
        send(b"S")
        child.begin()

    def follow(self):
        """Passes on output and watches limits until the program is dead and reaped."""
        poll = select.poll()
        for descriptor in (self.child.output, self.child.pidfd, CONTROL):
            poll.register(descriptor, select.POLLIN)
        last_progress = last_slow = self.started
        open_output = True
        while True:
            ready = dict(poll.poll(WATCH_SECONDS * 1000))
            if self.child.output in ready and not self.pass_on_output():
                poll.unregister(self.child.output)
                open_output = False
            if CONTROL in ready:
                kind, _ = receive_frame()
                if kind == b"K":
                    self.kill()
            if self.child.pidfd in ready:
                break
            now = time.monotonic()
            usage, slow = self.usage, now - last_slow >= SLOW_WATCH_SECONDS
            usage.look(self.limits["memoryBytes"])
            self.peak_bytes = max(self.peak_bytes, usage.memory_bytes)
            if usage.memory_bytes > self.limits["memoryBytes"]:
                self.kill("memory")
            elif usage.tasks > self.limits["processes"] + 1:
                self.kill("processes")
            elif slow and usage.tasks > 1 and usage.open_files() > OPEN_FILES_OF_ALL:
                self.kill("openFiles")
            elif slow and self.counted and self.is_scratch_full():
                self.kill("scratch")
            if slow:
                last_slow = now
            if now - last_progress >= PROGRESS_SECONDS:
                send_json(b"P", {"cpuSeconds": usage.cpu_seconds, "memoryBytes": usage.memory_bytes})
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
        send_json(b"X", self.reaped)
        while open_output and self.pass_on_output():
            pass

    def is_scratch_full(self):
        """Whether there is more in scratch and $TMPDIR together than allowed."""
        files = 0
        bytes_ = self.usage.deleted_bytes(os.fstat(self.scratch).st_dev)
        for directory in self.counted:
            files_here, bytes_here = watch.files_below(directory, self.limits["scratchFiles"])
            files, bytes_ = files + files_here, bytes_ + bytes_here
        return files > self.limits["scratchFiles"] or bytes_ > self.limits["scratchBytes"]

    def kill(self, reason=None):
        """SIGKILL, at once: nothing else is worth trying on a program that may ignore it. In a PID namespace the
        kernel kills everything with its first process."""
        self.killed_for = self.killed_for or reason
        signal.pidfd_send_signal(self.child.pidfd, signal.SIGKILL)

    def pass_on_output(self):
        """Moves what the pipe holds to the supervisor. False at its end, or once a dead program's pipe is empty."""
        count = struct.unpack("i", fcntl.ioctl(self.child.output, termios.FIONREAD, b"\0\0\0\0"))[0]
        if count == 0:
            return False
        count = min(count, LARGEST_FRAME)
        announce(b"O", count)
        while count > 0:
            count -= os.splice(self.child.output, CONTROL, count)
        return True

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
