"""The /proc of a program at `namespaces`: its own processes, and files about the machine that tell no secret.

The kernel has an option for a /proc with processes alone (`subset=pid`), but psutil and others also need files such as meminfo, and nothing can
be mounted where no file is. So the child mounts a whole /proc, read-only, and covers each entry by an empty file or directory, except
processes, links (which lead to the reader's own process) and OPEN. The files of `facts` and meminfo have a text of their own that does not
change, so they carry no message and show nobody's load. What a newer kernel adds is covered, too.
Covered: a program cannot remove a cover, because it has neither capabilities nor the system calls. Not covered: an entry that appears while
a program runs, because someone loads a kernel module; the program can read it if everybody can.
"""

import os

from linux import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, MS_REMOUNT, mount

OPEN = ("filesystems", "loadavg", "uptime", "version")  # what the system calls sysinfo and uname tell as well
EMPTY_FILE, EMPTY_DIRECTORY = "empty", "empty-directory"


def facts(proc="/proc"):
    """Returns {name: text}, read from the machine's /proc: the processors that this process may use, without the load of the machine."""
    cpus = os.sched_getaffinity(0)
    stat = _lines(f"{proc}/stat")
    own = [line for line in stat if line.startswith("cpu") and line[3:].split()[0] in map(str, cpus)]
    return {
        "cpuinfo": "".join(f"{block.strip()}\n\n" for block in "".join(_lines(f"{proc}/cpuinfo")).split("\n\n")
                           if block.strip() and _processor(block) in (None, *cpus)),
        "stat": "".join([*(f"{line.split()[0]} {' '.join(['0'] * 10)}\n" for line in ["cpu", *own]),
                         *(line for line in stat if line.startswith("btime ")), "processes 1\nprocs_running 1\nprocs_blocked 0\n"]),
        "vmstat": "pswpin 0\npswpout 0\n",
    }


def memory_of(bytes_):
    """Returns the text of meminfo for a program that may use `bytes_` of memory: all of it is free, and there is no swap."""
    bytes_ = min(bytes_, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    free = ("MemTotal", "MemFree", "MemAvailable")
    nothing = ("Buffers", "Cached", "SwapCached", "Active", "Inactive", "SwapTotal", "SwapFree", "Shmem", "Slab", "SReclaimable", "SUnreclaim")
    return "".join(f"{name + ':':<16}{bytes_ // 1024 if name in free else 0:>8} kB\n" for name in (*free, *nothing))


def _lines(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readlines()
    except OSError:
        return []


def _processor(block):
    """Returns the number of the processor that a block of cpuinfo describes; None if it describes the machine."""
    name, _, value = block.strip().partition("\n")[0].partition(":")
    return int(value) if name.strip() == "processor" and value.strip().isdigit() else None


def write_covers(directory):
    """Writes the files that `mount_covered` needs into an empty directory."""
    os.mkdir(f"{directory}/{EMPTY_DIRECTORY}", 0o555)
    for name, text in {EMPTY_FILE: "", **facts()}.items():
        with open(f"{directory}/{name}", "w") as file:
            file.write(text)
        os.chmod(f"{directory}/{name}", 0o444)


def mount_covered(covers):
    """Mounts /proc with covers. Read-only, because without Landlock a program could write its own oom_score_adj. `covers`: the directory of `write_covers` on a read-only mount. Raises OSError."""
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY)
    texts = set(os.listdir(covers))
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() or entry.is_symlink() or entry.name in OPEN:
            continue
        cover = EMPTY_DIRECTORY if entry.is_dir(follow_symlinks=False) else entry.name if entry.name in texts else EMPTY_FILE
        mount(f"{covers}/{cover}", f"/proc/{entry.name}", None, MS_BIND)


def mount_memory(bytes_, directory):
    """Mounts /proc/meminfo for a program that may use `bytes_` of memory. `directory`: on a file system in memory, which keeps the text."""
    path = f"{directory}/meminfo"
    with open(path, "w") as file:
        file.write(memory_of(bytes_))
    mount(path, "/proc/meminfo", None, MS_BIND)
    mount(None, "/proc/meminfo", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    os.unlink(path)  # so it can be read by its mount only, and written by nobody
