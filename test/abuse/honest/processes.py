# A pool of processes, with fork and with spawn.
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        open("submission.csv", "w").write(str(sum(pool.map(abs, range(-50, 50)))))
