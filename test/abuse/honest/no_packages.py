# The standard library alone: csv, statistics, dataclasses, regular expressions, decimal numbers.
import csv, dataclasses, decimal, functools, itertools, re, statistics
@dataclasses.dataclass
class Row:
    a: decimal.Decimal
    target: int
with open("input/train.csv", newline="") as file:
    rows = [Row(decimal.Decimal(row["a"]), int(row["target"])) for row in csv.DictReader(file)]
means = {target: statistics.mean(row.a for row in rows if row.target == target) for target in sorted({row.target for row in rows})}
total = functools.reduce(lambda one, other: one + other, itertools.chain(means.values()))
with open("submission.csv", "w", newline="") as file:
    csv.writer(file).writerows([[target, re.sub(r"(\.\d{4})\d*", r"\1", str(mean))] for target, mean in means.items()] + [["all", round(total, 4)]])
