# Uses up resources that the kernel counts by user instead of by process: pending signals, timers, locked memory, watches, keys, queues,
# namespaces. The supervisor and other programs of the same user would lack them.
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
def most(make, enough):
    count = 0
    while count < enough and make():
        count += 1
    return count
timers = (ctypes.c_void_p * 1)()
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_long), ("signal", ctypes.c_int), ("notify", ctypes.c_int), ("padding", ctypes.c_char * 48)]
event = Event(0, 0, 1)  # SIGEV_NONE
timer_create = 222 if os.uname().machine == "x86_64" else 107
count = most(lambda: libc.syscall(timer_create, 1, ctypes.byref(event), ctypes.byref(timers)) == 0, 5000)
if count > 300:
    print("BREACH timers", count)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
libc.sigqueue.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
count = most(lambda: libc.sigqueue(os.getpid(), int(signal.SIGRTMIN), None) == 0, 5000)
if count > 300:
    print("BREACH signals", count)
buffer = ctypes.create_string_buffer(1 << 20)
if libc.mlock(buffer, ctypes.c_size_t(1 << 20)) == 0:
    print("BREACH mlock")
for name, call in (("inotify", libc.inotify_init), ("epoll", lambda: libc.epoll_create1(0)), ("fanotify", lambda: libc.fanotify_init(0, 0)),
                   ("a message queue", lambda: libc.mq_open(b"/queue", os.O_CREAT | os.O_RDWR, 0o600, None)),
                   ("a key", lambda: libc.syscall(248 if os.uname().machine == "x86_64" else 217, b"user", b"name", b"x" * 1000, ctypes.c_size_t(1000), -2)),
                   ("perf", lambda: libc.syscall(298 if os.uname().machine == "x86_64" else 241, buffer, 0, -1, -1, 0)),
                   ("asynchronous input", lambda: libc.syscall(206 if os.uname().machine == "x86_64" else 0, 1000, ctypes.byref(ctypes.c_ulong(0))))):
    if call() >= 0:
        print("BREACH", name)
os.write(1, b"held\n")
os._exit(0)
