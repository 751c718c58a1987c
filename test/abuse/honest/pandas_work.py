# Grouping, dates, text columns, pickling to scratch and back.
import pandas as pd
frame = pd.read_csv("input/train.csv")
frame["when"] = pd.date_range("2020-01-01", periods=len(frame), tz="Europe/Berlin")
frame["text"] = frame["a"].astype(str).str.upper()
frame.to_pickle("frame.pkl")
assert pd.read_pickle("frame.pkl").equals(frame)
frame.groupby(frame["a"].round(1))["target"].mean().to_csv("submission.csv")
