# Grows between its prints as fast as it can: forwarding its output must not delay the check of its memory.
import os
kept = []
while True:
    kept.append(bytearray(1 << 20))
    os.write(1, b"\n" * 1000)
