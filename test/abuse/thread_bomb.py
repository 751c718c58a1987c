# Starts threads without end.
import threading, time
started = 0
try:
    while True:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        started += 1
except RuntimeError:
    pass
if started > 80:
    print("BREACH", started, "threads")
print("held")
