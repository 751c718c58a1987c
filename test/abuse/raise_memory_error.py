# Claims to be out of memory. Earns nothing: a failure like others.
raise MemoryError("not really")
