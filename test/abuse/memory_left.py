# Searches all its memory for the previous program's output and submission. It leaves the same data itself, and runs twice.
import ctypes, os
# Two bytes and a text that stand beside each other in no program's memory before it prints them.
mark, text = bytes([255, 254]), "".join(["left", "-by-", "the-program-", "before"] * 3).encode()
found = 0
try:
    maps = open("/proc/self/maps").read().splitlines()
except OSError:
    maps = []
for line in maps:
    bounds, mode, *rest = line.split()
    if not mode.startswith("rw") or "/dev/" in line or "[v" in line:
        continue
    start, end = (int(bound, 16) for bound in bounds.split("-"))
    for address in range(start, end, 1 << 22):
        part = ctypes.string_at(address, min(1 << 22, end - address))
        at = part.find(text)
        while at != -1:
            found += at > 1 and part[at - 2:at] == mark
            at = part.find(text, at + 1)
if found:
    print("BREACH", found)
os.write(1, (mark + text + b"\n") * 2000)
with open("submission.csv", "wb") as file:
    file.write((mark + text + b"\n") * 2000)
os.write(1, b"held\n")
