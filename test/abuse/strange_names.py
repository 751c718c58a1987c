# File names that end scripts and parsers: line feeds, bytes that are no UTF-8, options, the longest there are.
import os
for name in (b"a\nb", b"\xff\xfe", b"-rf", b"--", b"*", b"$(touch owned)", b";id", b"x" * 255, b" ", b"\x1b[2J", "é".encode()):
    for make in (lambda: open(name, "w").close(), lambda: os.mkdir(name + b".d"[: 255 - len(name)]), lambda: os.symlink(name, b"l" + name[:200])):
        try:
            make()
        except OSError:
            pass
print("held")
