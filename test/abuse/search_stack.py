# Looks for answers, keys and the grader in its own process: callers' frames, every object, every module, its memory.
import gc, os, sys
needle = "".join(["secret", "-answer-", "4711"])
own = globals()
frame = sys._getframe()
while frame:
    for values in (frame.f_locals, frame.f_globals):
        for name, value in list(values.items()):
            if values is not own and needle in repr(value)[:10_000]:
                print("BREACH", frame.f_code.co_filename, name)
    frame = frame.f_back
for value in gc.get_objects():
    if isinstance(value, (dict, list, tuple)) and value is not own and len(value) < 1000:
        if any(isinstance(item, (str, bytes)) and item == needle for item in list(value)):
            print("BREACH an object", type(value))
if any(needle in value for value in os.environ.values()) or any("grading" in name for name in sys.modules):
    print("BREACH")
print("held")
