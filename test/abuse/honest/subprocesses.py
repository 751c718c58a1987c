# Starts another Python, and a shell, and reads what they print: only where there can be more than one process.
import subprocess, sys
answer = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True, check=True).stdout.strip()
listed = subprocess.run("echo $((1 + 1))", shell=True, capture_output=True, text=True, check=True).stdout.strip()
open("submission.csv", "w").write(f"{answer} {listed}\n")
