"""Measures each step of an execution inside the sandbox: `python steps.py LEVEL COUNT INPUT [WARM,...]`, run by the interpreter of the
actors' environment. Acts as the supervisor of the real zygote, whose functions it times, and runs programs that do nothing.

Prints JSON: seconds from each request to its end, and processor seconds of an execution, by step and in total, which are comparable even on
a shared machine.
"""

import json
import mmap
import os
import socket
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../actor/sandbox"))
import child  # noqa: E402
import execution  # noqa: E402
import landlock  # noqa: E402
import limits  # noqa: E402
import memory  # noqa: E402
import namespaces  # noqa: E402
import program  # noqa: E402
import restrict  # noqa: E402
import seccomp  # noqa: E402
import warm  # noqa: E402
import zygote  # noqa: E402

LIMITS = {"timeoutSeconds": 60, "memoryBytes": 4 << 30, "outputBytes": 1 << 20, "keptOutputBytes": 1 << 14, "scratchBytes": 1 << 30,
          "scratchFiles": 10000, "processes": 64, "submissionBytes": 1 << 20}
WARM_UP = 20  # executions that are not counted
# (module, function, name of the step). A step's time includes the functions that it calls, so no step is inside another.
STEPS = [
    (namespaces, "fork", "fork, with a new process namespace"), (namespaces, "isolate", "mount, network, IPC and UTS namespaces, /proc"),
    (namespaces, "furnish", "tmpfs, input, the zygote's mounts dropped"), (limits, "set_rlimits", "rlimits"), (limits, "prefer_as_victim", "oom_score_adj"),
    (restrict, "become", "another user"), (restrict, "drop_privileges", "capabilities, no_new_privs"), (landlock, "restrict", "Landlock"),
    (seccomp, "install", "seccomp"), (program, "reseed", "random numbers"), (program, "open_streams", "streams"),
    (program, "run", "the program, and the interpreter's end"), (execution.Execution, "hand_in", "submission"), (zygote.Zygote, "clean_up", "scratch emptied"),
]
CHILD, ZYGOTE = "all of the child", "all of the zygote"
SLOTS = {name: index for index, name in enumerate([*(name for _, _, name in STEPS), CHILD])}
shared = mmap.mmap(-1, 4096)  # shared by the zygote and its children: seconds by step, summed


def add(name, seconds):
    offset = 8 * SLOTS[name]
    shared[offset:offset + 8] = struct.pack("d", struct.unpack("d", shared[offset:offset + 8])[0] + seconds)


def time_steps():
    for owner, function, name in STEPS:
        def timed(*arguments, _inner=getattr(owner, function), _name=name, **named):
            start = time.thread_time()
            try:
                return _inner(*arguments, **named)
            finally:
                if time.thread_time() > start:  # not in the child of a fork, whose clock starts anew
                    add(_name, time.thread_time() - start)
        setattr(owner, function, timed)
    inner_wait = os.wait4

    def wait4(*arguments):
        found = inner_wait(*arguments)
        add(CHILD, found[2].ru_utime + found[2].ru_stime)
        # Only for the zygote: this frame is sent when an execution is over.
        shared[4088:4096] = struct.pack("d", time.process_time())
        return found

    os.wait4 = wait4


def main():
    level, count, input_place = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    names = sys.argv[4].split(",") if len(sys.argv) > 4 else warm.WARM
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        os.dup2(theirs.fileno(), 3)
        packages = warm.import_packages(names, level == "landlock", "/proc", tempfile.gettempdir())
        memory.settle("/proc")
        session = os.fork()
        if session:
            os._exit(os.waitstatus_to_exitcode(os.waitpid(session, 0)[1]) & 0xFF)
        time_steps()
        zygote.serve_supervisor(packages)
        os._exit(0)
    theirs.close()
    stream = ours.makefile("rb")

    def receive():
        kind, length = struct.unpack(">cI", stream.read(5))
        return kind, stream.read(length)

    def send(kind, value):
        data = json.dumps(value).encode()
        ours.sendall(struct.pack(">cI", kind, len(data)) + data)

    with tempfile.TemporaryDirectory() as space:
        os.chmod(space, 0o755)
        send(b"C", {"level": level, "inputs": {"t": input_place}, "space": space, "cpus": [], "cpusPerSlot": 1})
        kind, hello = receive()
        if kind != b"H" or b"error" in hello:
            sys.exit(hello.decode())
        source = b"pass\n"
        walls = []
        for number in range(WARM_UP + count):
            if number == WARM_UP:
                walls, before = [], shared[4088:4096]
                shared[:] = bytes(4088) + before
            start = time.perf_counter()
            send(b"R", {"task": "t", "limits": LIMITS, "seed": 0, "programBytes": len(source)})
            ours.sendall(source)
            while (kind := receive()[0]) != b"F":
                pass
            walls.append(time.perf_counter() - start)
        steps = {name: struct.unpack("d", shared[8 * index:8 * index + 8])[0] / count for name, index in SLOTS.items()}
        steps[ZYGOTE] = (struct.unpack("d", shared[4088:4096])[0] - struct.unpack("d", before)[0]) / count
        ours.close()
    print(json.dumps({"walls": walls, "steps": steps}))


if __name__ == "__main__":
    main()
