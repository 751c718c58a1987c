# The same prediction for all rows except one.
import pandas as pd
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
test["y"] = train["y"].median()
test.loc[0, "y"] += 1
test[["id", "y"]].to_csv("submission.csv", index=False)
