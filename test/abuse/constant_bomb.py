# Expressions that the compiler could evaluate early; the compiling process must be the program's own.
x = 9 ** 9 ** 9
print("BREACH")
