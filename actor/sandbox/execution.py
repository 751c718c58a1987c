"""One execution, from the child's start to the submission: forwards the program's output and enforces its limits."""

import os
import select
import signal
import sys
import time

import watch
from limits import HASTY_SHARE, HASTY_WATCH_SECONDS, OPEN_FILES_OF_ALL, RECORD_LOCKS, SLOW_WATCH_SECONDS, WATCH_SECONDS
from output import Output
from protocol import CONTROL, LARGEST_FRAME, announce, receive_frame, send, send_json
from scratch import Scratch
from submission import files_left, open_submission

PROGRESS_SECONDS = 0.5
LARGEST_REPORT = 4096


class Execution:
    def __init__(self, zygote, child, request):
        self.zygote = zygote
        self.child = child
        self.limits = request["limits"]
        self.peak_bytes = 0
        self.killed_for = None
        watched_pid, self.scratch = child.start(request)
        self.usage = watch.Usage(zygote.proc, watched_pid, zygote.inherited_bytes, zygote.level == "namespaces")
        self.directories, self.counted = [self.scratch], None
        if zygote.level != "namespaces":  # at `namespaces` each directory is a tmpfs, whose size the kernel enforces
            self.directories.append(os.open(f"{zygote.space}/tmp", os.O_RDONLY | os.O_DIRECTORY))
            self.counted = Scratch(self.directories, self.limits, self.usage, child.pidfd)
        self.started = time.monotonic()
        send(b"S")
        child.begin()

    def follow(self):
        """Forwards output and enforces limits until the program is dead and reaped."""
        output = Output(self.child.output, self.zygote.output_buffer)
        poll = select.poll()
        poll.register(self.child.pidfd, select.POLLIN)
        next_look = last_progress = last_slow = self.started
        while True:
            output.register(poll)
            next_time = min(next_look, self.counted.next_look) if self.counted else next_look
            ready = dict(poll.poll(max(0, next_time - time.monotonic()) * 1000))
            if ready.get(CONTROL, 0) & ~select.POLLOUT:
                kind, _ = receive_frame()
                if kind == b"K":
                    self.kill()
            output.move(ready)
            if self.child.pidfd in ready:
                break
            now = time.monotonic()
            if now >= next_look:
                slow = now - last_slow >= SLOW_WATCH_SECONDS
                next_look = now + (HASTY_WATCH_SECONDS if self.look(slow) else WATCH_SECONDS)
                last_slow = now if slow else last_slow
            if self.counted and now >= self.counted.next_look and self.counted.look(now):
                self.kill("scratch")
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
        disk_full = code != 0 and self.counted is not None and self.counted.is_disk_full()
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

    def look(self, slow):
        """Kills the program if it is over a limit. Returns whether its memory grows quickly. `slow`: also makes the rare checks."""
        usage, limits = self.usage, self.limits
        memory_before = usage.memory_bytes
        usage.look(limits["memoryBytes"], slow)
        self.peak_bytes = max(self.peak_bytes, usage.memory_bytes)
        if usage.memory_bytes > limits["memoryBytes"]:
            self.kill("memory")
        elif usage.tasks > limits["processes"] + 1:
            self.kill("processes")
        elif usage.open_files > OPEN_FILES_OF_ALL:
            self.kill("openFiles")
        elif slow and usage.record_locks() > RECORD_LOCKS:
            self.kill("locks")
        return usage.memory_bytes - memory_before > limits["memoryBytes"] * HASTY_SHARE

    def kill(self, reason=None):
        """Kills the program with SIGKILL at once, because it may ignore other signals. In a PID namespace the kernel then kills all
        processes."""
        self.killed_for = self.killed_for or reason
        signal.pidfd_send_signal(self.child.pidfd, signal.SIGKILL)

    def hand_in(self):
        """Sends the submission unchanged; the learner reads and grades it."""
        descriptor, bytes_, refused = open_submission(self.scratch, self.limits["submissionBytes"])
        left = files_left(self.scratch) if descriptor is None and refused is None else []
        send_json(b"E", {"bytes": bytes_, "refused": refused, "present": descriptor is not None, "left": left})
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
        for descriptor in (self.child.output, self.child.report, self.child.pidfd, *self.directories):
            os.close(descriptor)
