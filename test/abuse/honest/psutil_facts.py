# needs: psutil
# Asks psutil what the machine has and what the program itself uses.
import os, re, time
import psutil

memory, swap = psutil.virtual_memory(), psutil.swap_memory()
total = int(re.search(r"MemTotal: +(\d+)", open("/proc/meminfo").read())[1]) * 1024
me = psutil.Process()
before = me.memory_info().rss
held = bytearray(50 << 20)
checks = [
    0 < memory.available <= memory.total == total, memory.percent < 100, swap.percent <= 100, 1 <= psutil.cpu_count() <= 4096,
    me.pid == os.getpid(), me.memory_info().rss - before > 40 << 20, me.num_threads() >= 1, me.cpu_times().user >= 0,
    me.status() == "running", psutil.cpu_percent() >= 0, len(psutil.getloadavg()) == 3,
    abs(time.time() - psutil.boot_time()) < 10 * 365 * 86400, 0 <= time.time() - me.create_time() < 3600,
]
open("submission.csv", "w").write("id,price\n" + "".join(f"{index},{int(each)}\n" for index, each in enumerate(checks)))
