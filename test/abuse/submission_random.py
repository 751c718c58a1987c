# Random bytes, which nothing compresses, as many as the scratch directory takes with some room left: the learner would
# have to receive, hash and store all of them. More than a submission may have, they are refused unread.
import os
with open("submission.csv", "wb") as submission:
    for _ in range(48):
        submission.write(os.urandom(1 << 20))
