# Replaces itself by another program again and again, as a process whose number exists only for a moment.
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
