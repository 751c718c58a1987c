"""What each step of an execution costs, inside the sandbox: `python steps.py LEVEL COUNT INPUT [WARM,...]`, as the interpreter of
the actors' environment. Plays the supervisor of the real zygote, whose functions it times, and runs programs that do nothing.

Prints JSON: seconds of each execution, of each step in the mean, and the whole machine's processor seconds for an execution.
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
import namespaces  # noqa: E402
import program  # noqa: E402
import restrict  # noqa: E402
import seccomp  # noqa: E402
import zygote  # noqa: E402

LIMITS = {"timeoutSeconds": 60, "memoryBytes": 4 << 30, "outputBytes": 1 << 20, "keptOutputBytes": 1 << 14, "scratchBytes": 1 << 30,
          "scratchFiles": 10000, "processes": 64, "submissionBytes": 1 << 20}
# (module, function, name of the step). What one calls is part of what it costs, so no step is inside another.
STEPS = [
    (namespaces, "fork", "fork, with a new process namespace"), (namespaces, "isolate", "mount, network, IPC and UTS namespaces, /proc"),
    (namespaces, "furnish", "tmpfs, input, the zygote's mounts dropped"), (limits, "set_rlimits", "rlimits"), (limits, "prefer_as_victim", "oom_score_adj"),
    (restrict, "become", "another user"), (restrict, "drop_privileges", "capabilities, no_new_privs"), (landlock, "restrict", "Landlock"),
    (seccomp, "install", "seccomp"), (program, "reseed", "random numbers"), (program, "open_streams", "streams"),
    (program, "run", "the program, and the interpreter's end"), (execution.Execution, "hand_in", "submission"), (zygote.Zygote, "clean_up", "scratch emptied"),
]
SLOTS = {name: index for index, name in enumerate([name for _, _, name in STEPS] + ["exit"])}
shared = mmap.mmap(-1, 4096)  # of the zygote and its children: seconds by step, added up


def add(name, seconds):
    offset = 8 * SLOTS[name]
    shared[offset:offset + 8] = struct.pack("d", struct.unpack("d", shared[offset:offset + 8])[0] + seconds)


def time_steps():
    for owner, function, name in STEPS:
        def timed(*arguments, _inner=getattr(owner, function), _name=name, **named):
            start, pid = time.perf_counter(), os.getpid()
            try:
                return _inner(*arguments, **named)
            finally:
                if os.getpid() == pid:  # not in the child of a fork
                    add(_name, time.perf_counter() - start)
        setattr(owner, function, timed)
    inner_exit, inner_wait = os._exit, os.wait4

    def exit_(status):
        shared[4088:4096] = struct.pack("d", time.perf_counter())
        inner_exit(status)

    def wait4(*arguments):
        found = inner_wait(*arguments)
        add("exit", time.perf_counter() - struct.unpack("d", shared[4088:4096])[0])
        return found

    os._exit, os.wait4 = exit_, wait4


def machine_seconds():
    with open("/proc/stat") as file:
        names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
        return dict(zip(names, (int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in file.readline().split()[1:])))


def main():
    level, count, input_place = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    ours, theirs = socket.socketpair()
    os.dup2(theirs.fileno(), 3) if theirs.fileno() != 3 else None
    if os.fork() == 0:
        ours.close()
        sys.argv[1:] = []
        time_steps()
        zygote.main()
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
        warm = sys.argv[4].split(",") if len(sys.argv) > 4 else None
        config = {"level": level, "inputs": {"t": input_place}, "space": space, "cpus": [], "cpusPerSlot": 1}
        send(b"C", config | ({"warm": warm} if warm is not None else {}))
        kind, hello = receive()
        if kind != b"H" or b"error" in hello:
            sys.exit(hello.decode())
        source = b"pass\n"
        walls = []
        before = machine_seconds()
        shared[:] = bytes(4096)
        for _ in range(count):
            start = time.perf_counter()
            send(b"R", {"task": "t", "limits": LIMITS, "seed": 0, "programBytes": len(source)})
            ours.sendall(source)
            while (kind := receive()[0]) != b"F":
                pass
            walls.append(time.perf_counter() - start)
        steps = {name: struct.unpack("d", shared[8 * index:8 * index + 8])[0] / count for name, index in SLOTS.items()}
        after = machine_seconds()
        ours.close()
    print(json.dumps({"walls": walls, "steps": steps, "machine": {name: (after[name] - before[name]) / count for name in before}}))


if __name__ == "__main__":
    main()
