# Floods the terminal. Must end as outputLimit, and what is kept of it must stay small.
while True:
    print("x" * 1000)
