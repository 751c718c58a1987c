# needs: pyarrow
# pandas with pyarrow: parquet to scratch and back, columns of Arrow's own types.
import pandas as pd
frame = pd.read_csv("input/train.csv", engine="pyarrow")
frame.to_parquet("train.parquet")
back = pd.read_parquet("train.parquet", dtype_backend="pyarrow")
back.groupby("target")["a"].mean().round(6).to_csv("submission.csv")
