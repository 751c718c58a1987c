# abort(): SIGABRT, or the C library's fallback when that is ignored.
import os
os.abort()
