# Uses no processor time, so that limits on it are never reached. The outcome is timedOut.
import time
time.sleep(1e6)
