# Predicts next to nothing: cheating programs fall back to this, so that their gain is visible.
import pandas as pd
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
test["y"] = train["y"].mean() + test["id"] % 2 - 0.5
test[["id", "y"]].to_csv("submission.csv", index=False)
