# Ends with status 0 at once, without a submission: the outcome is `completed`, and worth nothing without one.
import os
os._exit(0)
