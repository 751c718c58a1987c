# TIOCSTI types into the terminal of the user who started the run.
import fcntl
for descriptor in (0, 1, 2):
    try:
        fcntl.ioctl(descriptor, 0x5412, b"x")
        print("BREACH")
    except OSError:
        pass
try:
    fcntl.ioctl(open("/dev/tty"), 0x5412, b"x")
    print("BREACH tty")
except OSError:
    pass
print("held")
