# Ends with status 0 at once, without a submission: the outcome is `completed`, which earns nothing without a submission.
import os
os._exit(0)
