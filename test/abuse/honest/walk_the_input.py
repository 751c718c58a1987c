# Looks for its data as careful programs do: walks, globs, pathlib, a path made absolute.
import glob, os, pathlib
import pandas as pd
found = sorted(os.path.join(place, name) for place, _, names in os.walk("input/", followlinks=True) for name in names)
assert found == sorted(glob.glob("input/*.csv")) == sorted(map(str, pathlib.Path("input").glob("*.csv"))), found
frame = pd.concat(pd.read_csv(os.path.abspath(path)) for path in found)
open("submission.csv", "w").write(f"{len(frame)} {frame['a'].sum():.6f}\n")
