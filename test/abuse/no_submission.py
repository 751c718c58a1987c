# Does everything except writing a submission.
import pandas as pd
pd.read_csv("input/train.csv")
