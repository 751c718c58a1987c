# Reads the supervisor's environment and memory, and looks for secrets inherited from it.
import gc, os
for pid in ("@SUPERVISOR@", str(os.getppid()), "@VICTIM@"):
    if pid == "0":
        continue
    for name in ("environ", "mem", "maps", "cmdline", "stack", "fd"):
        path = "/proc/%s/%s" % (pid, name)
        try:
            if name == "fd":
                print("BREACH", os.listdir(path))
            else:
                print("BREACH", path, open(path, "rb").read(200))
        except OSError:
            pass
if "LONGRUN_ABUSE_SECRET" in os.environ or any("zygote" in name for name in os.environ):
    print("BREACH environment")
for value in gc.get_objects():
    if isinstance(value, (dict, list)) and "@ANSWERS@" in str(value)[:100000]:
        if value is not globals() and "paths" not in str(value)[:50] and "__main__" not in str(value):
            print("BREACH heap", type(value))
            break
print("held")
