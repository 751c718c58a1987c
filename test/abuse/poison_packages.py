# Plants code that every later Python start or import would run: sitecustomize, .pth, a changed package, the sandbox itself.
import os, sys, sysconfig
places = [sysconfig.get_paths()["purelib"], sysconfig.get_paths()["stdlib"], "@SANDBOX@", os.path.dirname(sys.executable)]
for place in places:
    for name in ("sitecustomize.py", "abuse.pth", "usercustomize.py"):
        try:
            open(os.path.join(place, name), "w").write("print('owned')")
            print("BREACH", place, name)
        except OSError:
            pass
import numpy
try:
    open(numpy.__file__, "a").write("#")
    print("BREACH numpy")
except OSError:
    pass
print("held")
