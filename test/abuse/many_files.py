# Makes 20,000 small files: inodes run out before bytes do.
import time
for number in range(20_000):
    open("f%d" % number, "w").close()
time.sleep(5)
print("BREACH")
