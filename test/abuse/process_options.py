# prctl: options that give back removed rights, or hide the process's identity.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for option, arguments, what in ((28, (0,), "secure bits"), (47, (2, 21), "ambient capability"), (38, (0,), "no_new_privs off"),
                                (36, (1,), "subreaper"), (4, (0,), "dumpable"), (35, (1, 0), "PR_SET_MM"), (0x59616D61, (-1,), "ptracer")):
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    if libc.prctl(option, *padded) == 0:
        print("BREACH", what)
print("held")
