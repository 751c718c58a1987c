# Tries to take the covers off /proc, to mount another one, and to write to what lies under and on them.
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
entries = [name for name in "meminfo cpuinfo stat vmstat sys kcore keys kmsg kallsyms sysrq-trigger irq bus fs interrupts timer_list".split()]


def refused(what, result):
    if result != -1 or ctypes.get_errno() not in (1, 2, 22, 38):
        print("BREACH", what, result, ctypes.get_errno())


scratch = os.path.abspath("proc").encode()
os.mkdir("proc")
for flags in (0, 1, 2, 4, 8):
    for name in entries:
        refused(f"umount2({name}, {flags})", libc.umount2(f"/proc/{name}".encode(), flags))
refused("umount2(/proc)", libc.umount2(b"/proc", 2))
for target in (b"/proc", scratch):
    refused("mount(proc)", libc.mount(b"proc", target, b"proc", ctypes.c_ulong(0), None))
    refused("mount(subset)", libc.mount(b"proc", target, b"proc", ctypes.c_ulong(15), b"subset=pid"))
for flags in (4096, 4096 | 16384, 8192, 32 | 4096):  # MS_BIND, with MS_REC, MS_MOVE, MS_REMOUNT
    refused("mount(bind)", libc.mount(b"/proc", scratch, None, ctypes.c_ulong(flags), None))
refused("open_tree", libc.syscall(428, -100, b"/proc", 1))
refused("fsopen", libc.syscall(430, b"proc", 0))
refused("move_mount", libc.syscall(429, -100, b"/proc/meminfo", -100, scratch, 0))
handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128))
refused("name_to_handle_at", libc.syscall(303 if os.uname().machine == "x86_64" else 264, -100, b"/proc", handle, ctypes.byref(ctypes.c_int()), 0))
before = {name: os.stat(f"/proc/{name}").st_size for name in entries if os.path.exists(f"/proc/{name}")}
for name in entries:
    path = f"/proc/{name}"
    if os.path.exists(path) and os.stat(path).st_rdev == os.makedev(1, 3):
        continue  # covered with /dev/null by the container runtime: what is written there is gone
    for action in (lambda: os.close(os.open(path, os.O_WRONLY)), lambda: os.close(os.open(path, os.O_RDWR | os.O_TRUNC)), lambda: os.truncate(path, 0),
                   lambda: os.unlink(path), lambda: os.rmdir(path), lambda: os.rename(path, path + "2"), lambda: os.rename("proc", path),
                   lambda: os.open(f"{path}/new", os.O_CREAT | os.O_WRONLY), lambda: os.mkdir(f"{path}/new"), lambda: os.link(path, "link"),
                   lambda: os.symlink("/", "/proc/new")):
        try:
            action()
            print("BREACH", path, "was changed")
        except OSError:
            pass
    try:
        os.chmod(path, 0o777)  # at `landlock` without effect
        if os.stat(path).st_mode & 0o222 == 0o222:
            print("BREACH", path, "chmod")
    except OSError:
        pass
for name, size in before.items():
    if os.stat(f"/proc/{name}").st_size != size:
        print("BREACH", name, "has another size")
print("held")
