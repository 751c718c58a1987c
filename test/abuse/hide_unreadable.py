# Puts files into a directory that may be entered but not listed (mode 0300): a count that skips unreadable directories misses them.
import os, time
os.mkdir("hidden", 0o300)
try:
    for number in range(40):
        with open(f"hidden/{number}", "wb") as file:
            for _ in range(6):
                file.write(b"x" * (1 << 20))
    time.sleep(3)
    print("BREACH")
except OSError:
    print("held")
