# Becomes another program all the time, as a process whose number is seen for a moment only.
import os, sys, time
try:
    while True:
        if os.fork() == 0:
            os.execv("/bin/sh", ["sh", "-c", "exec sh -c 'exec sleep 0.001'"])
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
except OSError:
    time.sleep(60)
