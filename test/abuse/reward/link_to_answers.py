# Submits a link to the answers, against a grader that follows it.
import os
os.symlink("@ANSWERS@", "submission.csv")
