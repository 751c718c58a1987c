# Writes as many single bytes as possible: each costs a reader as much as a large write.
import os
for _ in range(200_000):
    os.write(1, b"x")
print("\nheld")
