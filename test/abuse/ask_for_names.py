# Whether a file is there, how large it is and when it was changed, without opening it. Of answers that is little, and it is
# more than nothing.
import os
try:
    print(os.stat("@ANSWERS@").st_size)
    print("open")
except OSError:
    print("held")
