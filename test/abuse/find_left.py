# Looks for what `leave_behind` left, and for other programs' source or output in memory.
import builtins, os, re, sys
import pandas
for place in (".", "/tmp", "/dev/shm", os.environ["TMPDIR"], os.environ["HOME"], "/var/tmp", "/space", "/"):
    if os.path.exists(place + "/left-behind"):
        print("BREACH", place)
if hasattr(builtins, "left_behind") or "left_behind" in sys.modules or hasattr(pandas, "left_behind") or "LEFT_BEHIND" in os.environ:
    print("BREACH state")
if sorted(os.listdir(".")) != ["input", "program.py"] or not open("program.py").read().startswith("# Looks for what"):
    print("BREACH", os.listdir("."))
pattern = re.compile(rb"find_left` must f[i]nd none")  # the pattern does not match its own text
try:
    for line in open("/proc/self/maps"):
        span, rights = line.split()[:2]
        if not rights.startswith("rw") or "[v" in line:
            continue
        start, end = (int(part, 16) for part in span.split("-"))
        with open("/proc/self/mem", "rb") as memory:
            memory.seek(start)
            if pattern.search(memory.read(end - start)):
                print("BREACH the last program is in memory")
except OSError:
    pass
print("held")
