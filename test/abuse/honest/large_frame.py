# A frame of some hundred megabytes: joins, sorts, rolling means.
import numpy as np
import pandas as pd
rng = np.random.default_rng(0)
frame = pd.DataFrame({"key": rng.integers(0, 1000, 2_000_000), "value": rng.random(2_000_000)})
means = frame.groupby("key")["value"].mean().rename("mean").reset_index()
joined = frame.merge(means, on="key").sort_values(["key", "value"], kind="stable")
open("submission.csv", "w").write(f"{joined['mean'].iloc[:1000].sum():.6f} {joined['value'].rolling(10).mean().iloc[-1]:.6f}\n")
