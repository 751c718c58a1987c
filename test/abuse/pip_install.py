# Installs a package from the network or from its own files, into the environment of all programs or into its home.
import os, site, subprocess, sys
os.makedirs("own", exist_ok=True)
open("own/setup.py", "w").write("from setuptools import setup\nsetup(name='abuse-was-here', py_modules=[])\n")
for target in (["--user"], ["--target", "@OUTSIDE@"]):
    try:
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--no-build-isolation", "--quiet", "--no-deps", *target, "./own"],
                              capture_output=True, timeout=3)
    except (OSError, subprocess.SubprocessError):
        pass
print("held")
