# File names that break scripts and parsers: line feeds, bytes that are not UTF-8, options, the longest possible names.
import os
for name in (b"a\nb", b"\xff\xfe", b"-rf", b"--", b"*", b"$(touch owned)", b";id", b"x" * 255, b" ", b"\x1b[2J", "é".encode()):
    for make in (lambda: open(name, "w").close(), lambda: os.mkdir(name + b".d"[: 255 - len(name)]), lambda: os.symlink(name, b"l" + name[:200])):
        try:
            make()
        except OSError:
            pass
print("held")
