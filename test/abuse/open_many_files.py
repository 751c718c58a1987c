# Opens as many files as possible in as many processes as possible: the whole machine shares the table.
import os, time
def fill():
    kept = []
    try:
        while True:
            kept.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    return kept
try:
    for _ in range(20):
        if os.fork() == 0:
            kept = fill()
            time.sleep(60)
    time.sleep(60)
    print("BREACH")
except OSError:
    print("BREACH" if len(fill()) > 1024 else "held")
