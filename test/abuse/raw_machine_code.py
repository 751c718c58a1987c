# Runs its own machine code that calls the kernel without the C library, against filters in the library: a socket by `syscall`.
import ctypes, mmap, os
if os.uname().machine == "x86_64":
    code = bytes.fromhex("b829000000bf02000000be01000000ba000000000f05c3")  # socket(AF_INET, SOCK_STREAM, 0)
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    result = ctypes.CFUNCTYPE(ctypes.c_long)(address)()
    if result >= 0:
        print("BREACH", result)
print("held")
