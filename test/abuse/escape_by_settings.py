# Writes to files that have allowed container escapes: core_pattern, uevent_helper, modprobe, sysrq, release_agent, binfmt_misc.
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/proc/sys/vm/panic_on_oom",
             "/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent",
             "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "/proc/sys/fs/binfmt_misc/register",
             "/proc/sys/kernel/yama/ptrace_scope", "/proc/self/uid_map", "/proc/self/setgroups", "/proc/self/oom_score_adj",
             "/proc/self/attr/exec", "/proc/self/loginuid"):
    for mode in ("r+", "w"):
        try:
            with open(path, mode) as file:
                file.write("0")
            print("BREACH", path)
        except OSError:
            pass
print("held")
