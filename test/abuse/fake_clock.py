# Replaces the clocks that a program can see, as programs do that are rewarded for speed: the duration must be the supervisor's own.
import datetime, sys, time
real = time.sleep
for name in ("time", "monotonic", "perf_counter", "process_time", "time_ns", "monotonic_ns", "perf_counter_ns"):
    setattr(time, name, lambda: 0)
sys.modules["timeit"] = None
real(0.4)
print("held")
