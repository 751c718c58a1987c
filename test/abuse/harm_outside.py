# Harms the user's own files without a right to write: truncates by O_TRUNC, renames, links, changes modes, times and attributes, and moves
# directories.
import os
victim = "@OUTSIDE@/precious"
for action in (lambda: os.open(victim, os.O_RDONLY | os.O_TRUNC), lambda: os.truncate(victim, 0),
               lambda: os.unlink(victim), lambda: os.rename(victim, "mine"), lambda: os.link(victim, "mine"),
               lambda: os.chmod(victim, 0), lambda: os.utime(victim, (0, 0)), lambda: os.chown(victim, 1, 1),
               lambda: os.setxattr(victim, "user.x", b"x"), lambda: os.rmdir("@OUTSIDE@/empty"),
               lambda: os.chmod("@OUTSIDE@", 0), lambda: os.symlink("x", "@OUTSIDE@/link"), lambda: os.mkdir("@OUTSIDE@/made")):
    try:
        action()
    except OSError:
        pass
print("held")
