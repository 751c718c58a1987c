# A link to the answers: a reader that follows it grades the answers against themselves.
import os
os.symlink("@ANSWERS@", "submission.csv")
