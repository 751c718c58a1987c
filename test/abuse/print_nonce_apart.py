# Prints its nonce in pieces, and encoded, for a later reader of the output. The plain nonce is removed; the other forms belong to this
# attempt alone, and no other attempt has the same.
nonce = "@NONCE@"
import sys
for part in (nonce[:16], nonce[16:]):
    sys.stdout.write(part)
    sys.stdout.flush()
print()
print(nonce[::-1])
print(nonce)
print("x" * 9000 + nonce + ":loaded data")
