# Writes files everywhere except in scratch.
import os
for place in ("@OUTSIDE@", "@TASK@", "/", "/etc", "/usr/lib", "/var/tmp", "/root", "/home", os.path.dirname(os.__file__), "..", "../..", "input"):
    try:
        open(os.path.join(place, "abuse-was-here"), "w").write("x")
        # The file system of this execution alone: files at /tmp and above scratch are removed with it.
        if not os.path.realpath(place).startswith("/space"):
            print("BREACH", place)
    except OSError:
        pass
print("held")
