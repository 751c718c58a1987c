# Reads and writes files below /sys, /dev, /run, /var, /boot and /root.
import os
processors = "/sys/devices/system/cpu"
for top in ("/sys", "/dev", "/run", "/var", "/boot", "/root", "/home", "/etc", "/opt", "/mnt", "/media", "/srv", "/lost+found"):
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders[:200] if folder.count("/") < 5 and not os.path.islink(f"{folder}/{name}")]
        for name in files[:200]:
            path = f"{folder}/{name}"
            for flags in (os.O_RDONLY, os.O_WRONLY):
                allowed = path in ("/dev/null",) or flags == os.O_RDONLY and (
                    path.startswith((processors, "/dev/", "/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives", "/opt/", "/mnt/", "/root/", "/home/")))
                try:
                    os.close(os.open(path, flags | os.O_NONBLOCK))
                    if not allowed and not path.startswith(("/dev/fd/", "/dev/shm/")) and not (top == "/dev" and name in ("zero", "full", "random", "urandom")):
                        print("BREACH", path, flags)
                except OSError:
                    pass
print("held")
