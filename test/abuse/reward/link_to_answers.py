# The submission is a link to the answers, for a grader that follows it.
import os
os.symlink("@ANSWERS@", "submission.csv")
