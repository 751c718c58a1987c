# Does everything but write a submission.
import pandas as pd
pd.read_csv("input/train.csv")
