# Misuses the way by which inserted markers leave: calls the printer with what was not inserted, writes an invented nonce to every descriptor,
# moves descriptors of its own to its numbers, and closes them.
import builtins, os
printer = vars(builtins).get("<marker>")
for arguments in ((7,), (-1,), ("loaded data",), (None,), (True, "x")):
    try:
        printer(*arguments)
    except Exception:
        pass
for descriptor in range(3, 1024):
    try:
        os.write(descriptor, b"f" * 32 + b":loaded data\n")
    except OSError:
        pass
own = os.open("submission.csv", os.O_CREAT | os.O_WRONLY)
for descriptor in range(3, 1024):
    if descriptor != own:
        try:
            os.dup2(own, descriptor)
        except OSError:
            pass
if printer:
    printer(0)
print("held")
