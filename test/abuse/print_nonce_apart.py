# Prints its nonce in pieces, and encoded, for whoever reads the output later. The plain one is taken out; the others are of
# this attempt alone, and no other has the same.
nonce = "@NONCE@"
import sys
for part in (nonce[:16], nonce[16:]):
    sys.stdout.write(part)
    sys.stdout.flush()
print()
print(nonce[::-1])
print(nonce)
print("x" * 9000 + nonce + ":loaded data")
