"""Forwards a program's output to the supervisor without blocking. While the supervisor is busy the program waits; the watch does not."""

import mmap
import os
import select
import socket
import struct

from protocol import CONTROL

HEADER = struct.Struct(">cI")
BUFFER_BYTES = 64 << 10
MADV_WIPEONFORK = 18


def make_buffer():
    """Returns a buffer for output in transit. A fork gets it wiped, so that a program cannot read an earlier program's output."""
    buffer = mmap.mmap(-1, BUFFER_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    buffer.madvise(MADV_WIPEONFORK)
    return buffer


class Output:
    """`source`: descriptor of our end of the program's output, a stream socket."""

    def __init__(self, source, buffer):
        self._source = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=os.dup(source))
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=os.dup(CONTROL))
        self._buffer = memoryview(buffer)
        self._waiting = self._buffer[:0]  # the part that is still to be sent, with its header
        self._open = True

    @property
    def idle(self):
        """Returns whether no frame is half sent, so that another kind of frame may follow."""
        return not self._waiting

    def register(self, poll):
        """Registers the descriptors that the next `move` needs, and the supervisor's orders, with `poll`."""
        poll.register(CONTROL, select.POLLIN | (0 if self.idle else select.POLLOUT))
        if self._open and self.idle:
            poll.register(self._source, select.POLLIN)
        else:
            try:
                poll.unregister(self._source)
            except KeyError:
                pass

    def move(self, ready):
        """Sends as much of the waiting output as the supervisor accepts; if none waits, reads more from the program. `ready`: the answer of `poll`."""
        if not self.idle:
            if ready.get(CONTROL, 0) & select.POLLOUT:
                self._send(socket.MSG_DONTWAIT)
        elif self._source.fileno() in ready and self._take():
            self._send(socket.MSG_DONTWAIT)

    def complete(self):
        """Sends all waiting output, so that another kind of frame may follow."""
        while not self.idle:
            self._send(0)

    def finish(self):
        """Sends the rest of a dead program's output."""
        self.complete()
        while self._take():
            self.complete()
        self._source.close()
        self._control.close()

    def _take(self):
        """Reads output into the buffer. Returns False if there was none, also at its end."""
        try:
            count = self._source.recv_into(self._buffer[HEADER.size:], 0, socket.MSG_DONTWAIT) if self._open else 0
        except BlockingIOError:
            return False
        except ConnectionResetError:
            count = 0
        self._open = count > 0
        HEADER.pack_into(self._buffer, 0, b"O", count)
        self._waiting = self._buffer[:HEADER.size + count if count else 0]
        return self._open

    def _send(self, flags):
        try:
            self._waiting = self._waiting[self._control.send(self._waiting, flags):]
        except BlockingIOError:
            pass
