# Prints escape sequences (the clipboard, a title), C1 controls, overwriting, reordering, NUL and invalid UTF-8, which attack terminals, C
# strings and decoders. They are forwarded as bytes; a terminal shows them harmless (controller/harmless.ts).
import os
os.write(1, b"\x1b]52;c;cm0gLXJm\x07\xc2\x9b2J\xe2\x80\xaeb\x08a\rc\n")
os.write(1, b"\x1b[2J\x1b]0;owned\x07\x00\xff\xfe\xc3( end\n")
