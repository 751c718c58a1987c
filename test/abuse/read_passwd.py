# Reads files of the machine: users, keys, home directories.
import glob, os
for path in ("/etc/passwd", "/etc/shadow", "/etc/hostname", "/root/.ssh/id_rsa", os.path.expanduser("~/.bashrc"), "/proc/1/environ",
             "/proc/self/mountinfo", "/sys/kernel/notes"):
    try:
        text = open(path).read()
        if path == "/proc/1/environ" and os.getpid() == 1:
            continue  # this program
        if path.endswith("mountinfo") and "@OUTSIDE@" not in text and "@ANSWERS@" not in text:
            continue
        print("BREACH", path, text[:80])
    except OSError:
        pass
print(len(glob.glob("/home/*/*")), "held")
