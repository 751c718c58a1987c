# Fills $TMPDIR instead of the scratch directory, in case only the latter is counted.
import os, time
place = os.environ["TMPDIR"]
try:
    for number in range(8):
        with open(f"{place}/big{number}", "wb") as file:
            for _ in range(32):
                file.write(b"x" * (1 << 20))
    time.sleep(3)
    print("BREACH")
except OSError:
    print("held")
