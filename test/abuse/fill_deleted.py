# Fills the disk with files without a name: deleted but open, or never named (O_TMPFILE). Looking into directories does not find them.
import os, tempfile, time
kept = []
try:
    for number in range(8):
        file = tempfile.TemporaryFile(dir=".") if number % 2 else open("gone", "w+b")
        if number % 2 == 0:
            os.unlink("gone")
        for _ in range(32):
            file.write(b"x" * (1 << 20))
        file.flush()
        kept.append(file)
    time.sleep(3)
    print("BREACH")
except OSError:
    print("held")
