# concurrent.futures with processes: only where there can be more than one.
from concurrent.futures import ProcessPoolExecutor
def square(x):
    return x * x
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        open("submission.csv", "w").write(str(sum(pool.map(square, range(100)))))
