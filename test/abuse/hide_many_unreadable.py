# Makes as many empty files as possible, in a directory that cannot be listed.
import os, time
os.mkdir("hidden", 0o300)
try:
    for number in range(400_000):
        os.close(os.open(f"hidden/{number}", os.O_CREAT | os.O_WRONLY))
    print("BREACH")
except OSError:
    print("held")
