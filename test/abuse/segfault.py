# Ends by a signal that it causes: failed, with the signal.
import ctypes
ctypes.string_at(0)
