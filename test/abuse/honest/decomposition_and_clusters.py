# scikit-learn: PCA, k-means, a mixture of Gaussians, isolation forest.
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.mixture import GaussianMixture
train = pd.read_csv("input/train.csv")[["a", "b", "target"]]
reduced = PCA(2, random_state=0).fit_transform(train)
groups = KMeans(3, n_init=3, random_state=0).fit_predict(reduced)
mixture = GaussianMixture(2, random_state=0).fit(reduced)
outliers = IsolationForest(n_estimators=20, n_jobs=2, random_state=0).fit_predict(reduced)
open("submission.csv", "w").write(f"{sorted(map(int, pd.Series(groups).value_counts()))} {mixture.converged_} {int((outliers == -1).sum())}\n")
