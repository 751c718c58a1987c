# Floods its output. The outcome must be outputLimit, and the kept part small.
while True:
    print("x" * 1000)
