"""The protocol between the zygote and its supervisor: frames of one byte kind, four bytes length (big endian), payload.

  to the zygote     C {config}                         once, first
                    R {request}, then nonce and program  run; only while none runs
                    K                                  kill the running program; without effect if none runs
  to the supervisor H {level, …} or {error}            once, ready or given up
                    S                                  the program starts now
                    O bytes                            output
                    P {cpuSeconds, memoryBytes}        progress, twice a second
                    X {status, …}                      the program is reaped, all of it is dead
                    E {submission …}, then D bytes     the submission
                    F                                  cleaned up, ready for the next

Covered: the supervisor treats every frame as hostile bytes (frames.ts, sandbox.ts). A length above LARGEST_FRAME, a frame out of order, an
invalid number, or more bytes than announced only end the sandbox. The supervisor opens no path from a frame and unpickles none. A program
has no descriptor of this socket while it runs.
Not covered: a zygote under a program's control could lie about exit status, memory and processor time. The duration is the supervisor's
clock, so a lie gains only the milliseconds between a request and the start. It cannot forge markers, because it has to print the nonce that
it was given.
"""

import json
import os
import struct
import sys

CONTROL = 3  # descriptor of the zygote's end of the socket
LARGEST_FRAME = 1 << 20


def receive(count, descriptor=CONTROL):
    """Returns exactly `count` bytes from the supervisor. Without a supervisor the process ends."""
    data = bytearray()
    while len(data) < count:
        part = os.read(descriptor, count - len(data))
        if not part:
            os._exit(0)
        data += part
    return bytes(data)


def receive_frame():
    kind, length = struct.unpack(">cI", receive(5))
    if length > LARGEST_FRAME:
        sys.exit("frame too large")
    return kind, receive(length)


def announce(kind, length):
    """Sends the header of a frame whose payload follows without passing through this process's memory."""
    os.write(CONTROL, struct.pack(">cI", kind, length))


def send(kind, payload=b""):
    data = struct.pack(">cI", kind, len(payload)) + payload
    while data:
        data = data[os.write(CONTROL, data):]


def send_json(kind, value):
    send(kind, json.dumps(value).encode())
