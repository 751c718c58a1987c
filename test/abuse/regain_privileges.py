# Tries to become root: setuid, capabilities, a setuid program.
import ctypes, os, subprocess
for action in (lambda: os.setuid(0), lambda: os.setgroups([0]), lambda: os.chroot("/"), lambda: os.setresuid(0, 0, 0)):
    try:
        action()
        if os.getuid() == 0 and action.__code__.co_names[1:] in (("setuid",), ("setresuid",)):
            continue  # the id was always 0, without a capability
        print("BREACH", action.__code__.co_names)
    except OSError:
        pass
libc = ctypes.CDLL(None, use_errno=True)
for capability in range(41):
    if libc.prctl(23, capability, 0, 0, 0) == 1:  # PR_CAPBSET_READ
        print("bounding", capability) if False else None
for path in ("/bin/su", "/bin/mount", "/usr/bin/sudo", "/usr/bin/passwd"):
    try:
        done = subprocess.run([path, "-c", "cat @ANSWERS@"], capture_output=True, timeout=5, stdin=subprocess.DEVNULL)
        if b"secret" in done.stdout:
            print("BREACH", path)
    except (OSError, subprocess.SubprocessError):
        pass
print("held")
