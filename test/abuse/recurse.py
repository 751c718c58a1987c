# Recurses without end: a Python exception, or a segmentation fault of its own stack.
import sys
sys.setrecursionlimit(10 ** 9)
def f():
    return f()
f()
