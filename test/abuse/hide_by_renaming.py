# Moves a tree around all the time, so that a count looks in places that it has left.
import os, threading, time
os.makedirs("a/x")
os.mkdir("b")
def move():
    while True:
        for source, target in (("a/x", "b/x"), ("b/x", "a/x")):
            try:
                os.rename(source, target)
            except OSError:
                pass
descriptor = os.open("a/x", os.O_RDONLY | os.O_DIRECTORY)
threading.Thread(target=move, daemon=True).start()
try:
    for number in range(40):
        file = os.open(str(number), os.O_CREAT | os.O_WRONLY, dir_fd=descriptor)
        for _ in range(6):
            os.write(file, b"x" * (1 << 20))
        os.close(file)
    time.sleep(3)
    print("BREACH")
except OSError:
    print("held", flush=True)
