# Writes to the memory of the supervisor, the zygote and another process of the same user.
import os
for pid in ("@SUPERVISOR@", str(os.getppid()), "@VICTIM@"):
    for name in ("mem", "oom_score_adj", "comm", "coredump_filter"):
        try:
            with open("/proc/%s/%s" % (pid, name), "r+b", buffering=0) as file:
                file.write(b"0")
            print("BREACH", pid, name)
        except OSError:
            pass
print("held")
