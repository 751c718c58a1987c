"""Loads folders written by `longrun model convert` with transformers, and compares their weights with their sources' weights.

    npm run parity:reference -- check-converted
    python test/parity/check_converted.py SOURCE OUT [SOURCE OUT ...]    # what it calls after `longrun model convert`
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

torch.set_num_threads(1)
for folders in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    source, converted = (AutoModelForCausalLM.from_pretrained(folder, dtype="auto", output_loading_info=True) for folder in folders)
    assert not any(converted[1].values()), converted[1]
    weights, tensors = source[0].state_dict(), converted[0].state_dict()
    assert weights.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(tensor, weights[name].to(tensor.dtype)), (folders[1], name)
    print(f"{Path(folders[0]).name}: {len(tensors)} tensors equal, {sorted({str(t.dtype) for t in tensors.values()})}")
