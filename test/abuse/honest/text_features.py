# TfidfVectorizer and a sparse linear model in a pipeline.
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
texts, labels = ["good film", "bad film", "great film", "awful film"] * 10, [1, 0, 1, 0] * 10
model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
open("submission.csv", "w").write(str(model.score(texts, labels)))
