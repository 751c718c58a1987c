# Files anywhere but in scratch.
import os
for place in ("@OUTSIDE@", "@TASK@", "/", "/etc", "/usr/lib", "/var/tmp", "/root", "/home", os.path.dirname(os.__file__), "..", "../..", "input"):
    try:
        open(os.path.join(place, "abuse-was-here"), "w").write("x")
        # The file system of this execution alone: what is at /tmp and above scratch there is gone with it.
        if not os.path.realpath(place).startswith("/space"):
            print("BREACH", place)
    except OSError:
        pass
print("held")
