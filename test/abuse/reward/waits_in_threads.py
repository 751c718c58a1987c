# Guesses, and many threads wait for each other at once.
import pandas as pd
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
test["y"] = train["y"].mean() + test["id"] % 2 - 0.5
test[["id", "y"]].to_csv("submission.csv", index=False)
import threading
lock = threading.Event()
for _ in range(8):
    threading.Thread(target=lock.wait, args=(1.5,)).start()
lock.wait(1.5)
