# needs: lightgbm
# Gradient boosting of LightGBM, saved to a file and read back.
import lightgbm as lgb
import pandas as pd
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
data = lgb.Dataset(train[["a", "b"]], train["target"])
model = lgb.train({"objective": "regression", "verbose": -1, "num_threads": 2, "deterministic": True, "seed": 0, "min_data_in_leaf": 3}, data, 20)
model.save_model("model.txt")
test["target"] = lgb.Booster(model_file="model.txt").predict(test[["a", "b"]])
test[["id", "target"]].to_csv("submission.csv", index=False)
