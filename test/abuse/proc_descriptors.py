# Follows links below /proc/self to objects without a name: the root, the old working directory, mapped files, and descriptors of
# directories that lead upwards.
import os
def tried(what, path, flags=os.O_RDONLY):
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK)
    except OSError:
        return
    try:
        if b"secret" in os.read(descriptor, 1000) or os.path.exists(f"/proc/self/fd/{descriptor}/precious"):
            print("BREACH", what)
    except OSError:
        pass
    os.close(descriptor)
inputs = os.open("input", os.O_RDONLY | os.O_DIRECTORY)
for steps in range(1, 12):
    for start in ("/proc/self/root", "/proc/self/cwd", f"/proc/self/fd/{inputs}", "/proc/thread-self/root", "input"):
        tried(start, start + "/.." * steps + "@ANSWERS@")
        tried(start, start + "/.." * steps + "/private/answers.csv")
        tried(start, start + "/.." * steps + "/task/prepared/private/answers.csv")
for descriptor in range(64):
    for name in ("", "/..", "/../../private/answers.csv"):
        tried("a descriptor", f"/proc/self/fd/{descriptor}{name}")
for flags in (os.O_WRONLY, os.O_RDWR):
    for name in ("train.csv", "test.csv"):
        reading = os.open(f"input/{name}", os.O_RDONLY)
        try:
            os.open(f"/proc/self/fd/{reading}", flags)
            print("BREACH public data opened again, for writing")
        except OSError:
            pass
try:
    for name in os.listdir("/proc/self/map_files"):
        os.open(f"/proc/self/map_files/{name}", os.O_RDWR)
        print("BREACH map_files", name)
except OSError:
    pass
print("held")
