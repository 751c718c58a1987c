# joblib: a cache in scratch, parallel work in threads, arrays compressed to files.
import joblib
import numpy as np
memory = joblib.Memory("cache", verbose=0)
@memory.cache
def square(x):
    return x * x
values = joblib.Parallel(n_jobs=4, prefer="threads")(joblib.delayed(square)(number) for number in range(20))
joblib.dump(np.arange(1000), "array.gz", compress=3)
open("submission.csv", "w").write(f"{sum(values)} {joblib.load('array.gz').sum()}\n")
