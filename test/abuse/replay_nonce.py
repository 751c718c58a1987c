# Prints the nonce of an earlier attempt, found in its output or guessed: a forgery, which is counted.
import itertools
for digits in itertools.islice(itertools.product("0123456789abcdef", repeat=2), 64):
    print("".join(digits) * 16 + ":loaded data")
