# Submits the sample submission unchanged.
import shutil
shutil.copy("input/sample_submission.csv", "submission.csv")
