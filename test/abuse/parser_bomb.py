# Nests so deep that a recursive parser overflows the stack.
eval("(" * 100 + "1" + ")" * 100)
source = "x = " + "-" * 200_000 + "1"
exec(compile(source, "bomb", "exec"))
print("BREACH")
