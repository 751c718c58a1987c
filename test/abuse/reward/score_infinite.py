# Infinite predictions.
import pandas as pd
test = pd.read_csv("input/test.csv")
test["y"] = float("inf")
test[["id", "y"]].to_csv("submission.csv", index=False)
