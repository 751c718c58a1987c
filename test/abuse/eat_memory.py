# Takes memory until there is none. The outcome is outOfMemory, and the machine does not notice.
kept = []
while True:
    kept.append(bytearray(16 << 20))
