# Takes locks that belong to an open file instead of a process (F_OFD_SETLK), so that no count of a process's locks includes them; and
# leases.
import fcntl, os, struct
file = open("locked", "w+b")
for command in (37, 38, 36, 1024, 1026):
    try:
        fcntl.fcntl(file, command, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0) if command < 1000 else fcntl.F_RDLCK)
        print("BREACH", command)
    except OSError:
        pass
print("held")
