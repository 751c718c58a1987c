"""Writes requirements.txt: the wheels whose libraries make ONNX Runtime's CUDA provider work, each with its hash.

    python3 learner/cuda/lock.py > learner/cuda/requirements.txt

Asks pip alone (`pip install --dry-run --report`), so it works with every index that pip is configured for, and only downloads metadata. Run
it again after a change of WANTED. `onnxruntime-gpu` must have the release of `onnxruntime-node` in package.json, because both are built
from the same commit, and the provider belongs to that libonnxruntime.
"""

import json
import subprocess
import sys

WANTED = [
    "onnxruntime-gpu==1.30.0",
    "nvidia-cublas==13.1.1.3",
    "nvidia-cuda-nvrtc==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cudnn-cu13==9.20.0.48",
    "nvidia-cufft==12.0.0.61",
    "nvidia-curand==10.4.0.35",
    "nvidia-nvjitlink==13.5.37",
]
# The Python of the images' Debian.
PYTHON = "3.11"
PLATFORMS = [f"manylinux_{glibc}_x86_64" for glibc in ("2_28", "2_27", "2_17", "2_12")] + ["manylinux2014_x86_64"]

command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--report", "-", "--no-deps"]
command += ["--only-binary=:all:", "--target", "/nonexistent", "--python-version", PYTHON, "--implementation", "cp"]
for platform in PLATFORMS:
    command += ["--platform", platform]
report = json.loads(subprocess.run(command + WANTED, check=True, capture_output=True).stdout)
print(f"# Made by lock.py. Python {PYTHON}, x86_64.")
for item in sorted(report["install"], key=lambda item: item["metadata"]["name"]):
    digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
    print(f"{item['metadata']['name'].lower()}=={item['metadata']['version']} --hash=sha256:{digest}")
