# Makes calls that only root may make: each must fail, whoever started the zygote.
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
column = 0 if os.uname().machine == "x86_64" else 1
for name, numbers in {"reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "init_module": (175, 105), "finit_module": (313, 273),
                      "delete_module": (176, 106), "kexec_load": (246, 104), "acct": (163, 89), "quotactl": (179, 60), "settimeofday": (164, 170),
                      "clock_settime": (227, 112), "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
                      "modify_ldt": (154, None), "syslog": (103, 116), "vhangup": (153, 58), "pivot_root": (155, 41), "move_pages": (279, 239),
                      "migrate_pages": (256, 238), "process_madvise": (440, 440), "mount_setattr": (442, 442)}.items():
    if numbers[column] is None:
        continue
    result = libc.syscall(numbers[column], 0, 0, 0, 0, 0)
    if result != -1 or ctypes.get_errno() not in (1, 38):
        print("BREACH", name, result, ctypes.get_errno())
print("held")
