# Leaves files, modules and changed built-ins for the next execution: `find_left` must find none of them.
import builtins, os, sys, types
for place in (".", "/tmp", "/dev/shm", os.environ["TMPDIR"], os.environ["HOME"], "/var/tmp", "/space", "/"):
    try:
        open(place + "/left-behind", "w").write("x")
        os.mkdir(place + "/left-behind.d")
    except OSError:
        pass
builtins.left_behind = True
sys.modules["left_behind"] = types.ModuleType("left_behind")
import pandas
pandas.left_behind = True
os.umask(0o777)
os.environ["LEFT_BEHIND"] = "1"
print("held")
