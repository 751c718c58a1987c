# Finds the nonce in its own source, as a determined program can, and prints every marker with it. The actor counts them as seen; the
# learner only credits markers that were inserted.
import sys
frame = sys._getframe()
nonce = next(value for value in frame.f_code.co_consts if isinstance(value, str) and value.startswith("@NONCE@"))[:32]
for _ in range(3):
    print(nonce + ":loaded data")
print(nonce + ":no such marker")
print("the nonce is", nonce)
unused = "@NONCE@"
