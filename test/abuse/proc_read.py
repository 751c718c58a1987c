# Reads everything below /proc except what it may: its own processes at `namespaces`, a few files for libraries at `landlock`.
import os
LIBRARIES = {"/proc/cpuinfo", "/proc/meminfo"}
try:
    # A /proc of its own: all processes in it are its own.
    names = [name for name in os.listdir("/proc") if not name.isdigit() and name not in ("self", "thread-self")]
except OSError:
    names = [str(pid) for pid in (1, 2, os.getppid(), @SUPERVISOR@, @VICTIM@)] + """sys kmsg kcore kallsyms modules mounts locks interrupts
        softirqs iomem ioports slabinfo vmallocinfo timer_list sched_debug key-users keys config.gz cmdline consoles crypto devices diskstats dma
        filesystems fs irq loadavg misc mtrr net pagetypeinfo partitions schedstat scsi stat swaps sysvipc tty uptime version vmstat zoneinfo buddyinfo
        kpagecount kpageflags kpagecgroup latency_stats driver bus acpi asound pressure/cpu self/environ self/cmdline self/mem self/mounts self/net
        self/ns self/root self/io self/wchan self/stack self/syscall self/pagemap self/auxv self/cgroup self/mountinfo""".split()
for name in names:
    for path in (f"/proc/{name}", f"/proc/{name}/environ", f"/proc/{name}/maps", f"/proc/{name}/cmdline", f"/proc/{name}/status", f"/proc/{name}/kernel/hostname"):
        if path in LIBRARIES:
            continue
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            if os.path.isdir(path) or os.read(descriptor, 100):  # a container runtime puts /dev/null over hidden files
                print("BREACH", path)
            os.close(descriptor)
        except OSError:
            pass
print("held")
