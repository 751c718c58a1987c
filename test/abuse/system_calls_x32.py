# x32: 64-bit calls with a bit set in their number, against a filter that only compares numbers.
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if os.uname().machine == "x86_64":
    for number in (41, 57, 101, 165, 272, 321):
        if libc.syscall(0x40000000 | number, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 38:
            print("BREACH", number, ctypes.get_errno())
print("held")
