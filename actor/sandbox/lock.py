"""Writes requirements.txt: every wheel that pip would choose, with its hash, for each supported Python and machine.

    python3 actor/sandbox/lock.py Basic > actor/sandbox/requirements.txt
    python3 actor/sandbox/lock.py Paper > actor/sandbox/requirements-paper.txt

Asks pip alone (`pip install --dry-run --report`), so it works with every index that pip is configured for. It downloads metadata, or whole
wheels if pip or the index is too old for metadata alone (PEP 658); for Paper that is several GB. Run it again after a change of
proto/packages.json, which prompts read too. Run it with Python 3.11 or newer: pip evaluates markers (`python_version >= "3.11"`) for the
Python that runs it.
"""

import json
import pathlib
import subprocess
import sys

PACKAGES = json.loads((pathlib.Path(__file__).parents[2] / "proto/packages.json").read_text())
MACHINES = ("x86_64", "aarch64")
# Pythons that each set is locked for. Newer releases of the basic packages need Python 3.11, so 3.10 gets the last releases that support
# it. The paper's packages are locked for the images' Python.
PYTHONS = {"Basic": ("3.10", "3.11", "3.12", "3.13", "3.14"), "Paper": ("3.11",)}
OLDEST_GLIBC = {"x86_64": 5, "aarch64": 17}
GLIBC = 28
# Packages of 1 GB that wheels require but nothing here needs: the compiler of GPU kernels and packages that only it and C++ extensions use;
# NCCL of CUDA 12, which only xgboost's training on several GPUs would load and which would overwrite torch's NCCL of CUDA 13.
LEFT_OUT = {"triton", "cuda-bindings", "cuda-pathfinder", "setuptools", "nvidia-nccl-cu12"}


def wanted(packages, version):
    releases = packages.get(version, packages["3.11"])
    return [f"{name}=={release}" for name, release in releases.items()]


def resolve(requirements, version, machine):
    """Returns [(name, version, sha256)] of the wheels that pip picks for this Python on this machine."""
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(GLIBC, OLDEST_GLIBC[machine] - 1, -1)]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--report", "-"]
    command += ["--only-binary=:all:", "--target", "/nonexistent", "--python-version", version, "--implementation", "cp"]
    for tag in [*tags, f"manylinux2014_{machine}"]:
        command += ["--platform", tag]
    report = json.loads(subprocess.run(command + requirements, check=True, stdout=subprocess.PIPE).stdout)
    return [
        (item["metadata"]["name"].lower(), item["metadata"]["version"], item["download_info"]["archive_info"]["hashes"]["sha256"])
        for item in report["install"]
    ]


def marker(chosen, pythons):
    """Returns the marker of a release for the Pythons `chosen`, or None if no marker describes them."""
    if chosen == set(pythons):
        return ""
    if chosen == {"3.10"}:
        return ' ; python_version < "3.11"'
    if chosen == set(pythons) - {"3.10"}:
        return ' ; python_version >= "3.11"'
    return None


def main():
    if sys.argv[1:] not in [[name] for name in PYTHONS]:
        sys.exit(f"usage: lock.py {'|'.join(PYTHONS)}")
    pythons = PYTHONS[sys.argv[1]]
    hashes = {}  # (name, version) -> {"pythons": set, "hashes": set}
    for version in pythons:
        for machine in MACHINES:
            for name, release, digest in resolve(wanted(PACKAGES[sys.argv[1]], version), version, machine):
                if name.replace("_", "-") in LEFT_OUT:
                    continue
                entry = hashes.setdefault((name, release), {"pythons": set(), "hashes": set()})
                entry["pythons"].add(version)
                entry["hashes"].add(digest)
    span = pythons[0] if len(pythons) == 1 else f"{pythons[0]}-{pythons[-1]}"
    print(f"# Made by lock.py. Python {span}, glibc >= 2.{GLIBC}, " + " and ".join(MACHINES) + ".")
    for (name, release), entry in sorted(hashes.items()):
        condition = marker(entry["pythons"], pythons)
        if condition is None:
            sys.exit(f"{name} {release} is chosen for {sorted(entry['pythons'])}: no marker for that")
        print(f"{name}=={release}{condition} \\")
        print(" \\\n".join(f"    --hash=sha256:{digest}" for digest in sorted(entry["hashes"])))


if __name__ == "__main__":
    main()
