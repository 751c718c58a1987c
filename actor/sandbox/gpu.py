"""NVIDIA GPUs: which device files a program may open. Without one nothing of a sandbox is other than it was.

In a container those that are there, since its runtime puts there what the container asked for (`nvidia.com/gpu`). On one
machine those whose numbers the actor was given (`--gpus`), and none by default.
Covered: a program can open, and send ioctls to, FILES and its own GPUs' files, and no other device; GPUs of other slots are not
among them. Of the driver's settings it can read /proc/driver/nvidia, at `landlock` only: at `namespaces` its /proc has processes
and nothing else. Its libraries are below /usr, where the container runtime mounts them.
Not covered: faults of the driver, which takes hundreds of requests from whoever can open its files, and seccomp sees but their
numbers (gVisor knows them: `runtimeClassName`); memory and time of a GPU that slots share, which nothing divides, and what
the driver leaves in its memory; the address space: CUDA reserves far more than it uses, so RLIMIT_AS is not set and the watch
and the control group hold memory alone. MIG devices (/dev/nvidia-caps) and GPUs of others than NVIDIA are not looked for.
"""

import os
import re
import stat

FILES = ("nvidiactl", "nvidia-uvm")  # beside one for each GPU; administration, profiling and screens have others
DRIVER = "/proc/driver/nvidia"


class Gpus:
    """`names`: of the GPUs' files, e.g. nvidia0. `files`: all that a program may open. `environment`: for CUDA."""

    def __init__(self, names, files, environment):
        self.names, self.files, self.environment = names, files, environment


NONE = Gpus([], [], {})


def find(numbers, directory="/dev", driver=DRIVER):
    """The GPUs of these numbers, or all that are there (None). Raises OSError where one that was asked for cannot be used."""
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
    # As root we could; programs may be another user.
    by_everybody = mode & 0o006 == 0o006 or os.getuid() != 0
    return stat.S_ISCHR(mode) and by_everybody and os.access(path, os.R_OK | os.W_OK)


def _visible(numbers, driver):
    """Names for CUDA, which numbers GPUs in an order of its own: only those of the driver say which file is meant."""
    found = {}
    try:
        for gpu in os.listdir(f"{driver}/gpus"):
            with open(f"{driver}/gpus/{gpu}/information") as file:
                facts = dict((part.strip() for part in line.split(":", 1)) for line in file if ":" in line)
            found[int(facts["Device Minor"])] = facts["GPU UUID"]
        return {"CUDA_VISIBLE_DEVICES": ",".join(found[number] for number in numbers)}
    except (OSError, KeyError, ValueError):
        return {}  # which files can be opened has to do
