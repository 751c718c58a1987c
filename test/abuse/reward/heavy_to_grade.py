# A file that is slow to parse: one quoted field of a megabyte, endless columns, numbers of thousands of digits.
with open("submission.csv", "w") as file:
    file.write("id,y" + ",c" * 50_000 + "\n")
    for row in range(101, 141):
        file.write(f"{row}," + "9" * 5_000 + ',"' + '""' * 5_000 + "\n")
