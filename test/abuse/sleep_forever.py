# Uses no processor time, so that limits on it never come. timedOut.
import time
time.sleep(1e6)
