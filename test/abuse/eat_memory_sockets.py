# Fills socket buffers and pipes, which are kernel memory, not the program's own; more processes can fill more.
import os, socket, time
def fill():
    kept = []
    try:
        while True:
            pair = socket.socketpair()
            kept.append(pair)
            for end in pair:
                end.setblocking(False)
                try:
                    while True:
                        end.send(b"x" * 65536)
                except BlockingIOError:
                    pass
    except OSError:
        pass
    return kept
try:
    for _ in range(12):
        if os.fork() == 0:
            kept = fill()
            time.sleep(60)
    time.sleep(60)
    print("BREACH")
except OSError:
    kept = fill()
    print("BREACH" if len(kept) > 1024 else "held")
