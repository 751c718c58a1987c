# needs: psutil
# Looks at its own processes with psutil, and ends them as joblib does when a pool is shut down.
import subprocess, sys
import psutil
from joblib import Parallel, delayed

child = subprocess.Popen([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
child.stdout.readline()
found = psutil.Process().children(recursive=True)
names = [each.name().startswith("python") for each in found]
seen = child.pid in psutil.pids() and psutil.pid_exists(child.pid)
for each in found:
    each.terminate()
gone, alive = psutil.wait_procs(found, timeout=5)
squares = Parallel(n_jobs=2)(delayed(pow)(number, 2) for number in range(8))
open("submission.csv", "w").write(f"id,price\n0,{len(found)}\n1,{all(names)}\n2,{seen}\n3,{len(gone)}\n4,{len(alive)}\n5,{sum(squares)}\n")
