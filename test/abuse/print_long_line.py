# Prints one line of 10 MB without an end, against readers that collect lines. The outcome is outputLimit.
import sys
for _ in range(1000):
    sys.stdout.write("y" * 10_000)
    sys.stdout.flush()
