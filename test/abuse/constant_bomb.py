# Expressions that a compiler could evaluate beforehand, in the process that compiles: it is the program's own.
x = 9 ** 9 ** 9
print("BREACH")
