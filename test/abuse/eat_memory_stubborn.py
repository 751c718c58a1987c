# Catches the MemoryError and takes smaller pieces, for ever. The watch on resident memory, or the clock, ends it.
kept, size = [], 16 << 20
while True:
    try:
        kept.append(bytearray(size))
    except MemoryError:
        size = max(1, size // 2)
