# One line of 10 MB without an end, for whoever collects lines. outputLimit.
import sys
for _ in range(1000):
    sys.stdout.write("y" * 10_000)
    sys.stdout.flush()
