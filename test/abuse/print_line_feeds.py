# Line feeds only: a million lines, each of which costs whoever looks at lines one by one.
import os
os.write(1, b"\n" * 500_000)
os.write(1, b"a\n" * 250_000)
print("held")
