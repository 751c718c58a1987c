# Processes by every start method, a manager, and pipes: the sockets and files that multiprocessing makes for itself.
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor


def shifted(value):
    return value + 1.5


def fill(shared, name):
    shared[name] = len(name)


if __name__ == "__main__":
    lines = ["id,y"]
    for method in ("fork", "spawn", "forkserver"):
        context = mp.get_context(method)
        with context.Pool(2) as pool:
            lines += [f"{method},{value}" for value in pool.map(shifted, range(3))]
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            lines += [f"{method},{value}" for value in pool.map(shifted, range(3))]
        with context.Manager() as manager:
            shared = manager.dict()
            process = context.Process(target=fill, args=(shared, method))
            process.start()
            process.join()
            lines += [f"{name},{value}" for name, value in dict(shared).items()]
    with mp.Pool(2) as pool:  # the default: forkserver since Python 3.14
        lines += [f"default,{value}" for value in pool.map(shifted, range(3))]
    open("submission.csv", "w").write("\n".join(lines))
