# Asks whether a file exists, how large it is and when it changed, without opening it. For answers this reveals little, but more than
# nothing.
import os
try:
    print(os.stat("@ANSWERS@").st_size)
    print("open")
except OSError:
    print("held")
