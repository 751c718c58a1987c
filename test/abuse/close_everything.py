# Closes every descriptor, output and report included, and sleeps: a reader of its output would wait for ever.
import os, time
os.closerange(0, 1024)
time.sleep(600)
