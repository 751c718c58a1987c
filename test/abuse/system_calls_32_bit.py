# The same call by `int 0x80`, the entry for 32-bit programs, whose numbers mean other calls: a filter that only knows the 64-bit numbers
# would allow socketcall (102) as getuid. The kernel ends the program.
import ctypes, mmap, os
if os.uname().machine != "x86_64":
    os.abort()
code = bytes.fromhex("53b866000000bb0100000031c9cd805bc3")  # socketcall(SYS_SOCKET, 0)
memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(code)
print(ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))())
print("BREACH it went on")
