# Escape sequences (the clipboard, a title), C1 controls, overwriting, reordering, NUL, invalid UTF-8: bytes for terminals, C
# strings and decoders. Passed on as bytes, no more; what shows them on a terminal makes them harmless (controller/harmless.ts).
import os
os.write(1, b"\x1b]52;c;cm0gLXJm\x07\xc2\x9b2J\xe2\x80\xaeb\x08a\rc\n")
os.write(1, b"\x1b[2J\x1b]0;owned\x07\x00\xff\xfe\xc3( end\n")
