# Shuts its output down in both directions and continues: its end must still be noticed, and its limits enforced.
import os, socket, time
print("before", flush=True)
socket.socket(fileno=os.dup(1)).shutdown(socket.SHUT_RDWR)
while True:
    time.sleep(1)
