# A regular expression that backtracks for ever, in one call that no Python signal handler can interrupt.
import re
re.match(r"(a+)+$", "a" * 64 + "b")
print("BREACH")
