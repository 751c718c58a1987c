# Makes the next start of a program load its own code: LD_PRELOAD, PYTHONSTARTUP, a usercustomize in the home directory.
import os, subprocess, sys
os.makedirs(".local/lib/python3.11/site-packages", exist_ok=True)
for name in ("usercustomize.py", "sitecustomize.py", ".local/lib/python3.11/site-packages/usercustomize.py"):
    open(name, "w").write("open('@OUTSIDE@/preloaded', 'w')")
open("evil.so", "wb").write(b"\x7fELF" + b"\0" * 60)
try:
    subprocess.run([sys.executable, "-c", "pass"], env={"LD_PRELOAD": "./evil.so", "PYTHONPATH": "."}, timeout=5, capture_output=True)
except (OSError, subprocess.SubprocessError):
    pass
print("held")
