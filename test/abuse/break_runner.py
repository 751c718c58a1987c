# Attacks the process it runs in: closes the report, breaks print, sys, the exception hook, exits within exit.
import atexit, builtins, os, sys
os.write(3, b'{"exception": "' + b"A" * 3000 + b'", "line": -1}')
os.close(3)
sys.excepthook = lambda *arguments: os.write(1, b"hook\n") and None
builtins.print = None
atexit.register(lambda: 1 / 0)
sys.stdout = sys.stderr = None
raise ValueError("x")
