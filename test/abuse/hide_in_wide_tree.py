# Makes more sibling directories than a count can have open at once, with most of the bytes in the last ones.
import os, time
try:
    for number in range(490):
        os.mkdir(f"d{number}")
    for number in (0, 250, 489):
        with open(f"d{number}/big", "wb") as file:
            for _ in range(60):
                file.write(b"x" * (1 << 20))
    time.sleep(3)
    print("BREACH")
except OSError:
    print("held")
