# Closes every descriptor, output and report included, and sleeps on: whoever waits for output waits for ever.
import os, time
os.closerange(0, 1024)
time.sleep(600)
