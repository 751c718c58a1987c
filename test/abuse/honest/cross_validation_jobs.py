# joblib with two workers: processes where programs can have them, else one job after the other.
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
train = pd.read_csv("input/train.csv")
print(cross_val_score(Ridge(), train[["a", "b"]], train["target"], n_jobs=2, cv=3).mean())
search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, n_jobs=-1, cv=2).fit(train[["a", "b"]], train["target"])
open("submission.csv", "w").write(str(search.best_params_["alpha"]))
