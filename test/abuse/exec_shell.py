# Executes another program instead of Python. If that works, the program stays in the same sandbox.
import subprocess
try:
    done = subprocess.run(["/bin/sh", "-c", "cat @ANSWERS@ /etc/passwd; kill -9 @VICTIM@; echo x > @OUTSIDE@/shell"], capture_output=True, text=True)
    if "secret" in done.stdout or "root:" in done.stdout:
        print("BREACH", done.stdout)
except OSError:
    pass
print("held")
