# needs: xgboost
# Gradient boosting of XGBoost: a shared library with OpenMP of its own.
import pandas as pd
from xgboost import XGBRegressor
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
model = XGBRegressor(n_estimators=20, max_depth=3, n_jobs=2, random_state=0).fit(train[["a", "b"]], train["target"])
test["target"] = model.predict(test[["a", "b"]])
test[["id", "target"]].to_csv("submission.csv", index=False)
