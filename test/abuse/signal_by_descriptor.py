# A signal without kill(): F_SETOWN makes the kernel send SIGIO or another signal to any named process.
import fcntl, os
read, write = os.pipe()
try:
    fcntl.fcntl(read, fcntl.F_SETOWN, @VICTIM@)
    fcntl.fcntl(read, 10, 9)  # F_SETSIG SIGKILL
    fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(write, b"x")
except OSError:
    pass
print("held")
