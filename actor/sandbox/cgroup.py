"""Reads the limits of this container's control group. Versions 1 and 2."""

import os

ROOT = "/sys/fs/cgroup"
MEMBERSHIP = "/proc/self/cgroup"
# Parts of memory.stat that the kernel cannot reclaim. Pages of files are not among them, pages of tmpfs are.
HELD = (("anon", "rss"), ("shmem", "shmem"), ("kernel_stack",), ("pagetables",), ("slab_unreclaimable",), ("sock",))
# Reserve for memory that no figure contains: the next child, page tables of a large program, pipes and sockets.
RESERVE_BYTES, RESERVE_SHARE = 32 << 20, 1 / 128


def memory_bytes():
    """Returns the container's limit, or None if it has none."""
    limit = _limit("memory", "memory.max", "memory.limit_in_bytes")[1]
    return None if limit is None or limit >= 1 << 60 else limit  # version 1 uses a huge number for no limit


def memory_for_programs(inherited_bytes):
    """Returns (bytes that one program may use without the kernel killing the container, bytes of the container), or None without a limit.
    `inherited_bytes`: memory that a program shares with the zygote and may come to own by writing to it."""
    directory, limit = _limit("memory", "memory.max", "memory.limit_in_bytes")
    if limit is None or limit >= 1 << 60:  # version 1 uses a huge number for no limit
        return None
    with open(f"{directory}/memory.stat") as file:
        found = dict(line.split() for line in file)
    held = sum(next((int(found[name]) for name in names if name in found), 0) for names in HELD)
    return int(limit - held - inherited_bytes - RESERVE_BYTES - limit * RESERVE_SHARE), limit


def cpus():
    """Returns how many whole processors this container may use at once, at least 1, or None without a limit."""
    directory, quota = _limit("cpu", "cpu.max", "cpu.cfs_quota_us")
    if quota is None or quota < 0:
        return None
    if os.path.exists(f"{directory}/cpu.max"):
        with open(f"{directory}/cpu.max") as file:
            period = int(file.read().split()[1])
    else:
        with open(f"{directory}/cpu.cfs_period_us") as file:
            period = int(file.read())
    return max(1, quota // period)


def _limit(controller, name, first_version_name):
    """Returns (directory of this control group, its limit), or (None, None) without one. A container sees its own group as the root."""
    with open(MEMBERSHIP) as file:
        groups = {names: path for _, names, path in (line.rstrip("\n").split(":", 2) for line in file)}
    first_version = next((path for names, path in groups.items() if controller in names.split(",")), "")
    second_version = groups.get("", "")
    for directory, file_name in (
        (ROOT + second_version, name), (ROOT, name),
        (f"{ROOT}/{controller}{first_version}", first_version_name), (f"{ROOT}/{controller}", first_version_name),
    ):
        try:
            with open(f"{directory}/{file_name}") as file:
                value = file.read().split()[0]
            return directory, None if value == "max" else int(value)
        except OSError:
            continue  # missing or hidden
    return None, None
