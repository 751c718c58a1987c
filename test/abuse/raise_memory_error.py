# Claims to be out of memory. It gains nothing: a failure like others.
raise MemoryError("not really")
