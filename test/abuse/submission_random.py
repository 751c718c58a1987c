# Random bytes, which cannot be compressed, nearly as many as the scratch directory can hold: the learner would have to receive, hash and
# store all of them. A submission above its limit is refused unread.
import os
with open("submission.csv", "wb") as submission:
    for _ in range(48):
        submission.write(os.urandom(1 << 20))
