# An alarm of its own, to stop in time: signal handlers, timers, a thread that ends on request.
import signal, threading, time
class Late(Exception):
    pass
def late(number, frame):
    raise Late
signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    time.sleep(5)
    result = "no alarm"
except Late:
    result = "in time"
ended = threading.Event()
threading.Timer(0.05, ended.set).start()
open("submission.csv", "w").write(f"{result} {ended.wait(5)}\n")
