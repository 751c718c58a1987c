# Features that Python programs take for granted: the working directory, the home, exit hooks, hashing, time, exec.
import atexit, hashlib, json, locale, os, pathlib, platform, subprocess, sys, time, uuid, warnings
warnings.warn("a warning")
assert pathlib.Path("input/train.csv").exists() and pathlib.Path.home().exists()
assert os.path.isabs(os.getcwd()) and __name__ == "__main__" and __file__
print(platform.platform(), uuid.uuid4(), hashlib.sha256(b"").hexdigest(), time.monotonic(), file=sys.stderr)
@atexit.register
def finish():
    open("submission.csv", "w").write("written at exit")
