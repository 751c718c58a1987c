"""A descriptor that the runner keeps in a program's process."""

import os
import select


class Channel:
    """Writes to `descriptor`, unless the program has closed it: the number may then belong to a file of the program."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self._identity = self._look()

    def _look(self):
        found = os.fstat(self.descriptor)
        return found.st_dev, found.st_ino

    def write(self, data, wait=True):
        """Writes all of `data`. Does nothing if the other end or the descriptor is closed. `wait`: waits for a reader if the descriptor does not
        block but is full; otherwise the rest of `data` is dropped."""
        try:
            if self._look() != self._identity:
                return
            while data:
                try:
                    data = data[os.write(self.descriptor, data):]
                except BlockingIOError:  # the program made its output non-blocking, which both descriptors share
                    if not wait:
                        return
                    poll = select.poll()
                    poll.register(self.descriptor, select.POLLOUT)
                    poll.poll()
        except OSError:
            pass
