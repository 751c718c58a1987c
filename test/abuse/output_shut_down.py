# Shuts its output down in both directions and works on: its end must be seen all the same, and its limits be held.
import os, socket, time
print("before", flush=True)
socket.socket(fileno=os.dup(1)).shutdown(socket.SHUT_RDWR)
while True:
    time.sleep(1)
