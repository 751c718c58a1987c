# Reads everything below /proc except what it may: its own processes and a few files about the machine at `namespaces`, a few files for
# libraries at `landlock`. Looks past covers by other paths to the same files.
import os
ABOUT_MACHINE = {"cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version"}
try:
    # A /proc of its own: all processes in it are its own, and every other name is covered.
    names = [name for name in os.listdir("/proc") if not name.isdigit() and not os.path.islink(f"/proc/{name}")]
    ABOUT_MACHINE.add("vmstat")
    ROOTS = ("/proc", "/proc/self/root/proc", "/proc/1/cwd/../../proc", f"/proc/self/task/{os.getpid()}/root/proc", "/dev/fd/../../../proc")
except OSError:
    names = [str(pid) for pid in (1, 2, os.getppid(), @SUPERVISOR@, @VICTIM@)] + """sys kmsg kcore kallsyms modules mounts locks interrupts
        softirqs iomem ioports slabinfo vmallocinfo timer_list sched_debug key-users keys config.gz cmdline consoles crypto devices diskstats dma
        filesystems fs irq loadavg misc mtrr net pagetypeinfo partitions schedstat scsi stat swaps sysvipc tty uptime version vmstat zoneinfo buddyinfo
        kpagecount kpageflags kpagecgroup latency_stats driver bus acpi asound pressure/cpu self/environ self/cmdline self/mem self/mounts self/net
        self/ns self/root self/io self/wchan self/stack self/syscall self/pagemap self/auxv self/cgroup self/mountinfo""".split()
    ROOTS = ("/proc",)
INSIDE = ("", "/environ", "/maps", "/cmdline", "/status", "/kernel/hostname", "/kernel/random/boot_id", "/..", "/../kcore", "/../sys/kernel/ostype")
for root in ROOTS:
    for name in names:
        for inside in INSIDE:
            path = f"{root}/{name}{inside}"
            if name in ABOUT_MACHINE or inside == "/.." and root != "/proc":
                continue
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                # A container runtime puts /dev/null over hidden files, and the sandbox empty files and directories over all others.
                inherited = inside == "/.." and os.path.samestat(os.stat(path), os.stat("/proc"))
                if os.path.isdir(path) and os.listdir(path) and not inherited or not os.path.isdir(path) and os.read(descriptor, 100):
                    print("BREACH", path)
                os.close(descriptor)
            except OSError:
                pass
print("held")
