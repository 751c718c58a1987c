# Writes one file until the disk is full.
try:
    with open("big", "wb") as file:
        while True:
            file.write(b"x" * (1 << 20))
except OSError:
    print("held")
