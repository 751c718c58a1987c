# Ends well, and then does not: exit hooks and threads that go on for ever.
import atexit, threading, time
atexit.register(lambda: [time.sleep(1) for _ in iter(int, 1)])
threading.Thread(target=lambda: [time.sleep(1) for _ in iter(int, 1)]).start()
