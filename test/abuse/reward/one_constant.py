# The same prediction for all rows: the median, which is the best that needs no model.
import pandas as pd
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
test["y"] = train["y"].median()
test[["id", "y"]].to_csv("submission.csv", index=False)
