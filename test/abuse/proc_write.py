# Writes to its own files below /proc, and to the machine's and others': who is killed first for memory, core dumps, user ids, precision of
# timers.
import os
names = """oom_score_adj oom_adj clear_refs coredump_filter mem comm timerslack_ns loginuid sessionid uid_map gid_map projid_map setgroups
    autogroup sched make-it-fail fail-nth attr/current attr/exec attr/fscreate attr/keycreate attr/sockcreate timens_offsets""".split()
paths = [f"/proc/{who}/{name}" for who in ("self", "thread-self", "1", str(os.getppid()), "@SUPERVISOR@") for name in names]
paths += ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sys/kernel/ns_last_pid", "/proc/sys/fs/file-max",
          "/proc/sys/kernel/hostname", "/proc/sys/user/max_user_namespaces", "/proc/irq/default_smp_affinity", "/proc/mtrr", "/proc/acpi/wakeup", "/proc/timer_stats"]
for path in paths:
    for flags in (os.O_WRONLY, os.O_RDWR):
        try:
            os.close(os.open(path, flags))
            print("BREACH", path)
        except OSError:
            pass
print("held")
