# Calls parts of the kernel that exploits need and programs do not: each call must answer EPERM or ENOSYS.
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
column = 0 if os.uname().machine == "x86_64" else 1
for name, numbers in {"bpf": (321, 280), "io_uring_setup": (425, 425), "keyctl": (250, 219), "add_key": (248, 217),
                      "userfaultfd": (323, 282), "perf_event_open": (298, 241), "ptrace": (101, 117), "shmget": (29, 194),
                      "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180), "open_by_handle_at": (304, 265),
                      "name_to_handle_at": (303, 264), "fanotify_init": (300, 262), "inotify_init1": (294, 26),
                      "setns": (308, 268), "pidfd_getfd": (438, 438), "kcmp": (312, 272), "personality": (135, 92)}.items():
    result = libc.syscall(numbers[column], 0, 0, 0, 0, 0)
    if result != -1 or ctypes.get_errno() not in (1, 38):
        print("BREACH", name, result, ctypes.get_errno())
print("held")
