# Writes of one byte, as many as there can be: each costs whoever reads it as much as a large one.
import os
for _ in range(200_000):
    os.write(1, b"x")
print("\nheld")
