# Sends descriptors to a socket from which nobody takes them: they are open but in no process. The kernel counts them by user, so the
# supervisor could not send any more.
import array, os, socket, time
one, other = socket.socketpair()
try:
    for number in range(8):
        descriptor = os.open("gone", os.O_CREAT | os.O_RDWR)
        os.unlink("gone")
        for _ in range(30):
            os.write(descriptor, b"x" * (1 << 20))
        one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))])
        os.close(descriptor)
    time.sleep(3)
    print("BREACH")
except OSError:
    print("held")
