# scikit-learn: SVC with probabilities, nearest neighbours in parallel, a grid of both.
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
train = pd.read_csv("input/train.csv")
x = StandardScaler().fit_transform(train[["a", "b"]])
y = train["target"] > 1
svc = SVC(random_state=0).fit(x, y)
near = KNeighborsClassifier(3, n_jobs=2).fit(x, y)
open("submission.csv", "w").write("\n".join(f"{int(a)},{int(b)}" for a, b in zip(svc.predict(x), near.predict(x))))
