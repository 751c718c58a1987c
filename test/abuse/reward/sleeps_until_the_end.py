# Hands in nothing and sleeps until the clock ends it: the longest duration that there can be.
import time
time.sleep(600)
