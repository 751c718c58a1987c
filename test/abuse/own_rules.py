# Adds rules (Landlock, seccomp) without end: each takes kernel memory that belongs to no process.
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
rulesets = 0
for _ in range(1000):
    ruleset = libc.syscall(444, ctypes.create_string_buffer(struct.pack("<QQ", 0, 3)), ctypes.c_size_t(16), 0)
    if ruleset < 0:
        break
    for port in range(200):
        if libc.syscall(445, ruleset, 2, ctypes.create_string_buffer(struct.pack("<QQ", 1, port)), 0) == 0:
            rulesets += 1
if rulesets:
    print("BREACH Landlock", rulesets)
allow_all = struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000) * 4000
code = ctypes.create_string_buffer(allow_all)
program = ctypes.create_string_buffer(struct.pack("@HxxxxxxP", 4000, ctypes.addressof(code)))
seccomp = 317 if os.uname().machine == "x86_64" else 277
for _ in range(8):
    if libc.prctl(22, 2, program, 0, 0) == 0 or libc.syscall(seccomp, 1, 0, program) == 0:
        print("BREACH seccomp")
        break
print("held")
