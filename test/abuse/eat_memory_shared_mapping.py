# Shares anonymous memory among many processes: no process owns it alone, and no address space exceeds its limit.
import mmap, os, time
try:
    for _ in range(2):
        if os.fork() == 0:
            memory = mmap.mmap(-1, 240 << 20)
            for page in range(0, len(memory), 4096):
                memory[page] = 1
            time.sleep(60)
    time.sleep(60)
    print("BREACH")
except OSError:
    print("held")
