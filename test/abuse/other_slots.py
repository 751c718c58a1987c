# Attacks an execution that runs at the same time on this machine: its files by path, its processes by number and by name.
import glob, os
here = os.getcwd()
found = []
for pattern in ("../../*/scratch/*", "../../../slot-*/scratch/*", "/tmp/longrun*/slot-*/scratch/*", "/space/*/scratch/*", "/sandbox*/*", "/scratch*/*",
                "@NEIGHBOUR@/*", "@NEIGHBOUR@/scratch/*", "/proc/[0-9]*/cwd/*", "/proc/[0-9]*/root/space/scratch/*", "/proc/[0-9]*/environ"):
    for path in glob.glob(pattern):
        try:
            text = open(path, "rb").read(10_000)
            if b"neighbour" + b"-4711" in text:
                print("BREACH", path)
        except OSError:
            pass
for path in ("@NEIGHBOUR@/scratch/note", "@NEIGHBOUR@/tmp/note"):
    try:
        open(path, "a").write("x")
        print("BREACH", path)
    except OSError:
        pass
print("held")
