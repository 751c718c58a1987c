# Prints only line feeds: a million lines, which slow down a parser that handles lines one by one.
import os
os.write(1, b"\n" * 500_000)
os.write(1, b"a\n" * 250_000)
print("held")
