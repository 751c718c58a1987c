# A regular expression that backtracks for ever, inside one call that no signal handler of Python's interrupts.
import re
re.match(r"(a+)+$", "a" * 64 + "b")
print("BREACH")
