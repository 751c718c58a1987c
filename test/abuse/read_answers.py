# Reads the answers by every path: absolute, relative, through /proc, through open descriptors.
import os
paths = ["@ANSWERS@", "input/../../private/answers.csv", "input/../private/answers.csv",
         "/proc/@SUPERVISOR@/root@ANSWERS@", "/proc/1/root@ANSWERS@", "/proc/self/root@ANSWERS@", "/proc/@SUPERVISOR@/cwd" + "@ANSWERS@"]
paths += ["/proc/self/fd/%d/private/answers.csv" % number for number in range(64)]
paths += ["/proc/%d/root@ANSWERS@" % os.getppid()]
for path in paths:
    try:
        print("BREACH", path, open(path).read())
    except (OSError, UnicodeDecodeError):
        pass
for number in range(4, 1024):
    try:
        os.fstat(number)
        print("BREACH descriptor", number, "is open")
    except OSError:
        pass
print("held")
