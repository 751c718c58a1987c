# Ends without an error, but does not exit: exit hooks and threads run for ever.
import atexit, threading, time
atexit.register(lambda: [time.sleep(1) for _ in iter(int, 1)])
threading.Thread(target=lambda: [time.sleep(1) for _ in iter(int, 1)]).start()
