# Dies by a signal of its own making. failed, with the signal.
import ctypes
ctypes.string_at(0)
