# Makes files and directories that are hard to remove: no rights, immutable, read-only, not empty.
import fcntl, os, struct
os.makedirs("d/e/f", exist_ok=True)
for path in ("d/file", "d/e/file", "d/e/f/file"):
    open(path, "w").write("x")
descriptor = os.open("d/file", os.O_RDONLY)
for flags in (0x10, 0x20):  # FS_IMMUTABLE_FL, FS_APPEND_FL
    try:
        fcntl.ioctl(descriptor, 0x40086602, struct.pack("i", flags))
        print("BREACH", flags)
    except OSError:
        pass
for path in ("d/e/f/file", "d/e/f", "d/e", "d"):
    try:
        os.chmod(path, 0)
    except OSError:
        pass
print("held")
