# Opens devices: memory, disks, virtual machines, terminals, tunnels, graphics cards that were not assigned.
import glob, os
for path in ("/dev/mem", "/dev/kmem", "/dev/port", "/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/kvm", "/dev/fuse", "/dev/ptmx", "/dev/tty",
             "/dev/net/tun", "/dev/loop-control", "/dev/vsock", "/dev/rtc0", "/dev/snapshot", "/dev/userfaultfd", *glob.glob("/dev/nvidia*")):
    for flags in (os.O_RDONLY, os.O_WRONLY):
        try:
            os.close(os.open(path, flags | os.O_NOCTTY | os.O_NONBLOCK))
            print("BREACH", path)
        except OSError:
            pass
try:
    os.openpty()
    print("BREACH a terminal")
except OSError:
    pass
print("held")
