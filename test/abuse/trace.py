# Makes calls of debuggers and memory readers on the supervisor, the zygote and a bystander.
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
for pid in (@SUPERVISOR@, os.getppid(), @VICTIM@):
    for request in (PTRACE_ATTACH, PTRACE_SEIZE):
        if libc.ptrace(request, pid, None, None) != -1:
            print("BREACH ptrace", pid)
    buffer = ctypes.create_string_buffer(8)
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
    local, remote = Vector(ctypes.addressof(buffer), 8), Vector(0x400000, 8)
    if libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) != -1 or ctypes.get_errno() == 14:
        print("BREACH process_vm_readv", pid)
    try:
        os.pidfd_open(pid)
        print("BREACH pidfd_open", pid)
    except OSError:
        pass
print("held")
