# The nonce of an earlier attempt, found in an earlier output or guessed: a forgery, counted.
import itertools
for digits in itertools.islice(itertools.product("0123456789abcdef", repeat=2), 64):
    print("".join(digits) * 16 + ":loaded data")
