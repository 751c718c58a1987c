# scikit-learn's multi-layer perceptron: matrix products in OpenBLAS.
import warnings
import pandas as pd
from sklearn.neural_network import MLPRegressor
warnings.simplefilter("ignore")
train = pd.read_csv("input/train.csv")
model = MLPRegressor(hidden_layer_sizes=(16,), max_iter=50, random_state=0).fit(train[["a", "b"]], train["target"])
open("submission.csv", "w").write(f"{model.score(train[['a', 'b']], train['target']):.4f}\n")
