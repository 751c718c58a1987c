# Bytes that are no CSV. They are handed in unchanged; the grader must cope with them.
open("submission.csv", "wb").write(bytes(range(256)) * 4)
