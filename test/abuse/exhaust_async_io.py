# io_setup uses up a number that the whole machine shares (fs.aio-max-nr); databases could then not start.
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
number = 206 if os.uname().machine == "x86_64" else 0
for _ in range(8):
    context = ctypes.c_ulong(0)
    if libc.syscall(number, ctypes.c_uint(16384), ctypes.byref(context)) == 0:
        print("BREACH")
print("held")
