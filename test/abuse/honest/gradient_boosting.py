# HistGradientBoosting: OpenMP.
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
train = pd.read_csv("input/train.csv")
model = HistGradientBoostingRegressor(max_iter=10).fit(train[["a", "b"]], train["target"])
open("submission.csv", "w").write(str(model.score(train[["a", "b"]], train["target"])))
