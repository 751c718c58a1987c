"""The twin of grading.ts: scikit-learn's metrics, and MLE-bench's way from two files to a score, on the same data.

Reads a piece of work per line from stdin, and answers `{"seconds", "cpuSeconds", "score"}`.
"""

import json
import sys
import time

import numpy as np
import pandas as pd
from scipy.stats import pearsonr
from sklearn import metrics as m

folder = sys.argv[1]
facts = json.load(open(f"{folder}/facts.json"))


def columns(side, name):
    return [np.fromfile(f"{folder}/{name}-{side}-{c}.f64") for c in range(facts[name]["columns"])]


SCORES = {
    "RocAuc": lambda t, p: m.roc_auc_score(t[0], p[0]),
    "Accuracy": lambda t, p: m.accuracy_score(t[0], p[0]),
    "F1Macro": lambda t, p: m.f1_score(t[0], p[0], average="macro"),
    "QuadraticWeightedKappa": lambda t, p: m.cohen_kappa_score(t[0], p[0], weights="quadratic"),
    "Pearson": lambda t, p: pearsonr(t[0], p[0])[0],
    "R2": lambda t, p: m.r2_score(t[0], p[0]),
    "MAE": lambda t, p: m.mean_absolute_error(t[0], p[0]),
    "RMSE": lambda t, p: m.root_mean_squared_error(t[0], p[0]),
    "RMSLE": lambda t, p: (m.root_mean_squared_log_error(t[0], p[0]) + m.root_mean_squared_log_error(t[1], p[1])) / 2,
    "LogLoss": lambda t, p: m.log_loss(np.stack(t, 1), np.stack(p, 1)),
}


def read(path):
    return pd.read_csv(path, float_precision="round_trip")


def sorted_by(frame, name):
    return frame.sort_values(name)


def graded(name, answers):
    """Grades a submission like the task's grader; the answers are in memory."""
    task = facts[name]
    submission = read(f"{folder}/{name}.csv")
    targets = task["targets"]
    if task["check"]:
        if not ((submission[targets] >= 0) & (submission[targets] <= 1)).all().all():
            raise ValueError("range")
        if len(targets) > 1 and not submission[targets].sum(axis=1).round(6).eq(1).all():
            raise ValueError("sums")
    left, right = sorted_by(submission, task["id"]), sorted_by(answers, task["id"])
    if (left[task["id"]].values != right[task["id"]].values).any():
        raise ValueError("ids")
    truth, predicted = [[frame[t].to_numpy() for t in targets] for frame in (right, left)]
    return SCORES[task["metric"]](truth, predicted)


cache = {}
for line in sys.stdin:
    kind, name = line.split()
    if (kind, name) not in cache:
        cache[kind, name] = (columns("truth", name), columns("predicted", name)) if kind == "metric" else read(
            f"{folder}/{name}-answers.csv"
        )
    start, cpu = time.perf_counter(), time.process_time()
    score = SCORES[name](*cache[kind, name]) if kind == "metric" else graded(name, cache[kind, name])
    took = dict(seconds=time.perf_counter() - start, cpuSeconds=time.process_time() - cpu, score=float(score))
    print(json.dumps(took), flush=True)
