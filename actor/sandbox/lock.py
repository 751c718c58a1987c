"""Writes requirements.txt: every wheel that pip would choose, with its hash, for each supported Python and machine.

    python3 actor/sandbox/lock.py > actor/sandbox/requirements.txt

Asks pip alone (`pip install --dry-run --report`), so it works with whatever index pip is set up for; nothing is
downloaded but metadata. Run it again after a change of proto/packages.json, which prompts read too.
"""

import json
import pathlib
import subprocess
import sys

# Newer releases of all of them need Python 3.11: 3.10 gets the last ones that it can have.
PACKAGES = json.loads((pathlib.Path(__file__).parents[2] / "proto/packages.json").read_text())
WANTED = {python: [f"{name}=={release}" for name, release in packages.items()] for python, packages in PACKAGES.items()}
WANTED |= {version: WANTED["3.11"] for version in ("3.12", "3.13", "3.14")}
MACHINES = ("x86_64", "aarch64")
GLIBC = ("2_28", "2_27", "2_17")


def resolve(version, machine):
    """[(name, version, sha256)] of the wheels that pip picks for this Python on this machine."""
    tags = [f"manylinux_{glibc}_{machine}" for glibc in GLIBC] + [f"manylinux2014_{machine}"]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--report", "-"]
    command += ["--only-binary=:all:", "--target", "/nonexistent", "--python-version", version, "--implementation", "cp"]
    for tag in tags:
        command += ["--platform", tag]
    report = json.loads(subprocess.run(command + WANTED[version], check=True, capture_output=True).stdout)
    return [
        (item["metadata"]["name"].lower(), item["metadata"]["version"], item["download_info"]["archive_info"]["hashes"]["sha256"])
        for item in report["install"]
    ]


def main():
    hashes = {}  # (name, version) -> {"pythons": set, "hashes": set}
    for version in WANTED:
        for machine in MACHINES:
            for name, release, digest in resolve(version, machine):
                entry = hashes.setdefault((name, release), {"pythons": set(), "hashes": set()})
                entry["pythons"].add(version)
                entry["hashes"].add(digest)
    print("# Made by lock.py. Python 3.10-3.14, glibc >= 2.28, " + " and ".join(MACHINES) + ".")
    for (name, release), entry in sorted(hashes.items()):
        marker = ""
        if entry["pythons"] == {"3.10"}:
            marker = ' ; python_version < "3.11"'
        elif entry["pythons"] == set(WANTED) - {"3.10"}:
            marker = ' ; python_version >= "3.11"'
        elif entry["pythons"] != set(WANTED):
            sys.exit(f"{name} {release} is chosen for {sorted(entry['pythons'])}: no marker for that")
        print(f"{name}=={release}{marker} \\")
        print(" \\\n".join(f"    --hash=sha256:{digest}" for digest in sorted(entry["hashes"])))


if __name__ == "__main__":
    main()
