# Another program instead of Python. Where it works it stays in the same sandbox.
import subprocess
try:
    done = subprocess.run(["/bin/sh", "-c", "cat @ANSWERS@ /etc/passwd; kill -9 @VICTIM@; echo x > @OUTSIDE@/shell"], capture_output=True, text=True)
    if "secret" in done.stdout or "root:" in done.stdout:
        print("BREACH", done.stdout)
except OSError:
    pass
print("held")
