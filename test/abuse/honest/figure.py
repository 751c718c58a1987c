# needs: matplotlib
# matplotlib without a display: a cache of fonts in $MPLCONFIGDIR, a figure in a file.
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
train = pd.read_csv("input/train.csv")
figure, axes = plt.subplots()
axes.scatter(train["a"], train["target"])
axes.set_title("target by a")
figure.savefig("figure.png")
open("submission.csv", "w").write(f"{figure.canvas.get_width_height()}\n")
