# needs: catboost
# CatBoost writes logs into the working directory and starts threads of its own.
import pandas as pd
from catboost import CatBoostRegressor
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
model = CatBoostRegressor(iterations=20, depth=3, random_seed=0, verbose=False, thread_count=2).fit(train[["a", "b"]], train["target"])
test["target"] = model.predict(test[["a", "b"]])
test[["id", "target"]].to_csv("submission.csv", index=False)
