"""NVIDIA GPUs: the device files that a program may open. Without a GPU the sandbox is unchanged.

In a container these are all GPUs that its runtime provides (`nvidia.com/gpu`). On one machine they are the GPUs whose numbers the actor was
given (`--gpus`), by default none.
Covered: a program can open, and send ioctls to, FILES and the files of its own GPUs, but no other device, so not the GPUs of other slots.
It can read the driver's settings in /proc/driver/nvidia at `landlock` only; at `namespaces` they are covered (procfs.py). Its
libraries are below /usr, where the container runtime mounts them.
Not covered: faults of the driver, which answers hundreds of requests from any process that can open its files; seccomp sees only their
numbers (gVisor checks them: `runtimeClassName`). Memory and time of a GPU that slots share, which nothing divides, and data that the driver
leaves in its memory. The address space: CUDA reserves far more than it uses, so RLIMIT_AS is not set, and only the watch and the control
group limit memory. MIG devices (/dev/nvidia-caps) and other vendors' GPUs are not supported.
"""

import os
import re
import stat

FILES = ("nvidiactl", "nvidia-uvm")  # beside one file for each GPU; the files for administration, profiling and displays are left out
DRIVER = "/proc/driver/nvidia"


class Gpus:
    """`names`: the GPUs' file names, e.g. nvidia0. `files`: all files that a program may open. `environment`: variables for CUDA."""

    def __init__(self, names, files, environment):
        self.names, self.files, self.environment = names, files, environment


NONE = Gpus([], [], {})


def find(numbers, directory="/dev", driver=DRIVER):
    """Returns the GPUs of these numbers, or all GPUs (None). Raises OSError if a requested GPU cannot be used."""
    if numbers == []:
        return NONE
    there = sorted(int(name[6:]) for name in os.listdir(directory) if re.fullmatch(r"nvidia\d{1,3}", name))
    if numbers is None and not there:
        return NONE
    names = [f"nvidia{number}" for number in (there if numbers is None else numbers)]
    files = [f"{directory}/{name}" for name in (*FILES, *names)]
    for path in files:
        if not _can_be_used(path):
            raise OSError(f"{path} is not a device that programs could read and write; "
                          "mend the driver or its permissions, or give programs no GPU (--gpus, spec.actors.sandboxResources)")
    return Gpus(names, files, {} if numbers is None else _visible(numbers, driver))


def _can_be_used(path):
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    # Root can open the files, but programs may run as another user.
    by_everybody = mode & 0o006 == 0o006 or os.getuid() != 0
    return stat.S_ISCHR(mode) and by_everybody and os.access(path, os.R_OK | os.W_OK)


def _visible(numbers, driver):
    """Returns the GPUs' UUIDs for CUDA, which has its own order of GPUs: only the driver's UUIDs identify a device file."""
    found = {}
    try:
        for gpu in os.listdir(f"{driver}/gpus"):
            with open(f"{driver}/gpus/{gpu}/information") as file:
                facts = dict((part.strip() for part in line.split(":", 1)) for line in file if ":" in line)
            found[int(facts["Device Minor"])] = facts["GPU UUID"]
        return {"CUDA_VISIBLE_DEVICES": ",".join(found[number] for number in numbers)}
    except (OSError, KeyError, ValueError):
        return {}  # the open device files then decide alone
