# A wrong clock makes certificates invalid, leases expire and durations short.
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
before = time.time()
moment = (ctypes.c_long * 2)(1, 0)
for clock in (0, 1):
    if libc.clock_settime(clock, moment) == 0:
        print("BREACH clock", clock)
if libc.settimeofday(moment, None) == 0 or libc.adjtimex(ctypes.create_string_buffer(b"\1" + b"\0" * 300)) >= 0:
    print("BREACH")
if abs(time.time() - before) > 60:
    print("BREACH it jumped")
print("held")
