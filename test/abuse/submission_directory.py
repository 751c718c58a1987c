# A directory of that name.
import os
os.mkdir("submission.csv")
