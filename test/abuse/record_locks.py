# Locks single bytes of a file: each lock takes kernel memory that counts for no process.
import fcntl, os, time
file = open("locked", "w+b")
try:
    for number in range(700_000):
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 2 * number)
    time.sleep(2)
    print("BREACH")
except OSError:
    print("held")
