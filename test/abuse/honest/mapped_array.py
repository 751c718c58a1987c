# numpy: an array mapped from a file in scratch, saved archives, structured types, random numbers with a seed.
import numpy as np
mapped = np.memmap("array.bin", dtype="float32", mode="w+", shape=(1000, 100))
mapped[:] = np.random.default_rng(0).random((1000, 100), dtype="float32")
mapped.flush()
np.savez_compressed("arrays.npz", one=mapped[:10], two=np.arange(5))
loaded = np.load("arrays.npz")
open("submission.csv", "w").write(f"{float(np.memmap('array.bin', dtype='float32', mode='r').sum()):.2f} {loaded['one'].shape} {loaded['two'].sum()}\n")
