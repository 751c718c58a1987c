# Grows between its prints, as fast as it can: whoever passes its output on must not be kept from looking at its memory.
import os
kept = []
while True:
    kept.append(bytearray(1 << 20))
    os.write(1, b"\n" * 1000)
