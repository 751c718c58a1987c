# A link to the answers: who follows it grades the answers against themselves.
import os
os.symlink("@ANSWERS@", "submission.csv")
