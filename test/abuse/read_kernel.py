# Reads the kernel's facts about the machine and its other processes: symbols, memory, connections, processes, command lines.
for path in ("/proc/kallsyms", "/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/proc/cmdline", "/proc/net/tcp", "/proc/net/unix", "/proc/sched_debug",
             "/proc/timer_list", "/proc/modules", "/proc/mounts", "/proc/keys", "/sys/kernel/vmcoreinfo", "/sys/class/net/eth0/address",
             "/sys/devices/virtual/dmi/id/product_uuid", "/proc/locks", "/proc/1/cmdline", "/proc/@SUPERVISOR@/status"):
    try:
        text = open(path, "rb").read(4000)
        if not text:
            continue  # a container runtime hides files behind /dev/null
        # The view of our own namespaces reveals nothing about others. Each cover of /proc is a mount.
        lines = [line for line in text.splitlines() if b" /proc/" not in line]
        if path in ("/proc/net/tcp", "/proc/net/unix", "/proc/mounts") and b"longrun-abuse" not in text and len(lines) <= 40:
            continue
        if path == "/proc/1/cmdline" and b"zygote" in text:
            continue  # this program
        print("BREACH", path, text[:80])
    except OSError:
        pass
print("held")
