# Submits nothing and sleeps until the clock ends it: the longest possible duration.
import time
time.sleep(600)
