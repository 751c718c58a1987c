"""Solves generated tasks three times each: with a constant, a linear model and boosted trees.

Reads a line of JSON for each task on stdin: {"folder", "out", "metric", "kind", "target", "columns": {name: kind}}. First prints the
versions of Python and its packages. For each task it writes OUT/constant.csv, OUT/linear.csv and OUT/boosted.csv, and prints
{"seconds": {baseline: seconds of processor time}}, without the imports. Needs the packages of the programs' Python environment.
"""

import json
import os
import platform
import sys
import time
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

BALANCED = {"BalancedAccuracy", "F1", "Jaccard", "F1Macro"}
PROBABILITIES = {"RocAuc", "RocAucOneVsOne", "LogLoss", "Brier"}
TOP = 5


def with_dates(table, columns):
    """Returns the table with a day count, the month and the place in the year for each date, and the kinds of its columns."""
    table, kinds = table.copy(), dict(columns)
    for name, kind in columns.items():
        if kind == "date":
            day = pd.to_datetime(table.pop(name))
            del kinds[name]
            parts = {"days": (day - day.min()).dt.days, "month": day.dt.month}
            angle = 2 * np.pi * day.dt.dayofyear / 365
            parts |= {"sine": np.sin(angle), "cosine": np.cos(angle)}
            for part, values in parts.items():
                table[f"{name} {part}"] = values
                kinds[f"{name} {part}"] = "number"
        elif kind == "text":
            table[name] = table[name].fillna("")
        elif kind == "category":
            table[name] = table[name].fillna("missing").astype(str)
    return table, kinds


def named(kinds, wanted):
    return [name for name, kind in kinds.items() if kind == wanted]


def linear_features(kinds):
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    parts = [("numbers", numbers, named(kinds, "number"))]
    parts.append(("categories", OneHotEncoder(handle_unknown="ignore"), named(kinds, "category")))
    parts += [(name, TfidfVectorizer(), name) for name in named(kinds, "text")]
    return ColumnTransformer(parts, sparse_threshold=0)


def boosted_features(kinds):
    parts = [("numbers", "passthrough", named(kinds, "number"))]
    parts.append(("categories", OneHotEncoder(handle_unknown="ignore"), named(kinds, "category")))
    parts += [(name, CountVectorizer(binary=True, max_features=30), name) for name in named(kinds, "text")]
    return ColumnTransformer(parts, sparse_threshold=0)


def models(task):
    """Returns the linear and the boosted model of a task."""
    if task["kind"] in ("regression", "positive", "levels"):
        return Ridge(alpha=1.0), HistGradientBoostingRegressor(max_iter=120, learning_rate=0.08, random_state=0)
    weight = "balanced" if task["metric"] in BALANCED else None
    few = task["kind"] == "ranking"
    boosted = HistGradientBoostingClassifier(
        max_iter=25 if few else 60, learning_rate=0.1, max_leaf_nodes=8 if few else 15, class_weight=weight, random_state=0
    )
    return LogisticRegression(max_iter=300, class_weight=weight), boosted


def predictions(task, model, train, test, labels):
    """Returns the submission's columns by name."""
    target, kind, metric = task["target"], task["kind"], task["metric"]
    if kind == "positive":
        return {target: np.exp(model.fit(train, np.log(labels)).predict(test))}
    if kind == "levels":
        return {target: np.clip(np.rint(model.fit(train, labels).predict(test)), labels.min(), labels.max()).astype(int)}
    model.fit(train, labels)
    if kind == "regression" or (kind != "ranking" and metric not in PROBABILITIES):
        return {target: model.predict(test)}
    shares = model.predict_proba(test)
    if kind == "ranking":
        best = np.argsort(-shares, axis=1, kind="stable")[:, :TOP]
        return {target: [" ".join(model.classes_[row]) for row in best]}
    if kind == "binary":
        return {target: shares[:, list(model.classes_).index(1)]}
    return dict(zip(model.classes_, (shares / shares.sum(axis=1, keepdims=True)).T))


def constant(task, train, rows):
    """Returns the best prediction that looks at no feature, as far as the metric has one."""
    target, kind, metric = task["target"], task["kind"], task["metric"]
    labels = train[target]
    if kind in ("regression", "positive"):
        value = {"MAE": labels.median(), "RMSLE": np.expm1(np.log1p(labels).mean())}.get(metric, labels.mean())
        # The best constant of MAPE weighs small labels more.
        if metric == "MAPE":
            value = min(labels.quantile(np.linspace(0.1, 0.6, 26)), key=lambda c: (abs(labels - c) / labels).mean())
        return {target: np.full(rows, value)}
    shares = labels.value_counts(normalize=True)
    if kind == "ranking":
        return {target: [" ".join(shares.index[:TOP])] * rows}
    if kind == "binary" and metric in ("F1", "Jaccard"):
        return {target: np.ones(rows, dtype=int)}
    if kind == "binary" and metric in PROBABILITIES:
        return {target: np.full(rows, shares.get(1, 0.0))}
    if metric in PROBABILITIES:
        return {name: np.full(rows, share) for name, share in shares.items()}
    return {target: [shares.index[0]] * rows}


def extraction(train, test, target, features):
    """Returns a submission's column: words that the training texts select in more than half of their occurrences, by `features`."""
    seen, chosen = Counter(), Counter()
    for row in train.itertuples():
        label = set(getattr(row, target).split())
        for word in row.sentence.split():
            seen[features(row, word)] += 1
            chosen[features(row, word)] += word in label
    is_chosen = lambda row, word: 2 * chosen[features(row, word)] > seen[features(row, word)]
    most = Counter(train[target]).most_common(1)[0][0]
    return {target: [" ".join(w for w in row.sentence.split() if is_chosen(row, w)) or most for row in test.itertuples()]}


def solve(task):
    public = os.path.join(task["folder"], "prepared", "public")
    raw, raw_test = (pd.read_csv(os.path.join(public, name)) for name in ("train.csv", "test.csv"))
    target, seconds = task["target"], {}

    def submit(name, make):
        start = time.process_time()
        columns = make()
        seconds[name] = time.process_time() - start
        pd.DataFrame({"id": raw_test["id"], **columns}).to_csv(os.path.join(task["out"], f"{name}.csv"), index=False)

    if task["kind"] == "extraction":
        most = Counter(raw[target]).most_common(1)[0][0]
        submit("constant", lambda: {target: [most] * len(raw_test)})
        # A word is wanted in a third of its texts: without the column `wanted` the longest guess is all words of any group.
        submit("linear", lambda: {target: raw_test["sentence"]})
        submit("boosted", lambda: extraction(raw, raw_test, target, lambda row, word: (row.wanted, word)))
        return seconds
    submit("constant", lambda: constant(task, raw, len(raw_test)))
    linear, boosted = models(task)
    for name, model, features in (("linear", linear, linear_features), ("boosted", boosted, boosted_features)):

        def make():
            train, kinds = with_dates(raw[list(task["columns"])], task["columns"])
            test, _ = with_dates(raw_test[list(task["columns"])], task["columns"])
            pipeline = make_pipeline(features(kinds), model)
            return predictions(task, pipeline, train, test, raw[target])

        submit(name, make)
    return seconds


def main():
    warnings.filterwarnings("ignore")
    versions = {module.__name__: module.__version__ for module in (np, pd, sklearn)}
    print(json.dumps({"python": platform.python_version(), **versions}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"seconds": solve(json.loads(line))}), flush=True)


if __name__ == "__main__":
    main()
