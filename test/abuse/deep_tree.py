# Makes a tree so deep that recursive removal crashes, with directories that may not be entered.
import os
try:
    for _ in range(700):
        os.mkdir("d")
        os.chdir("d")
    os.mkdir("locked", 0)
except OSError:
    pass
print("held")
