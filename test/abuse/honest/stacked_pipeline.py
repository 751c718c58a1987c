# scikit-learn: columns by type, imputation, one-hot encoding, a stack of models, a pickle of it all.
import pickle
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingRegressor, StackingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
columns = ColumnTransformer([("number", SimpleImputer(), ["a"]), ("kind", OneHotEncoder(handle_unknown="ignore"), ["b"])])
stack = StackingRegressor([("boost", GradientBoostingRegressor(n_estimators=10, random_state=0)), ("ridge", Ridge())], n_jobs=2)
model = make_pipeline(columns, stack).fit(train[["a", "b"]], train["target"])
pickle.dump(model, open("model.pkl", "wb"))
test["target"] = pickle.load(open("model.pkl", "rb")).predict(test[["a", "b"]]).round(6)
test[["id", "target"]].to_csv("submission.csv", index=False)
