# The submission is a directory.
import os
os.mkdir("submission.csv")
