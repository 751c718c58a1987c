# abort(): SIGABRT, or what the C library does when that is ignored.
import os
os.abort()
