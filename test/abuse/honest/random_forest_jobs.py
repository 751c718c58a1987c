# Threads of scikit-learn (n_jobs=2).
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
train = pd.read_csv("input/train.csv")
model = RandomForestRegressor(n_estimators=10, n_jobs=2, random_state=0).fit(train[["a", "b"]], train["target"])
test = pd.read_csv("input/test.csv")
pd.DataFrame({"id": test["id"], "target": model.predict(test[["a", "b"]])}).to_csv("submission.csv", index=False)
