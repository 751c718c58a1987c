"""Loads folders written by `longrun model merge` with transformers, and compares weights and log-probs with peft's merge.

    npm run parity:reference -- check-merged
    python test/parity/check_merged.py MODEL ADAPTER OUT [MODEL ADAPTER OUT ...]    # what it calls after `longrun model merge`
"""

import sys
from pathlib import Path

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

WORST = 1e-6  # of a weight
WORST_LOG_PROB = 1e-4

torch.set_num_threads(1)
arguments = iter(sys.argv[1:])
for model, adapter, out in zip(arguments, arguments, arguments, strict=True):
    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    before = {name: tensor.clone() for name, tensor in base.state_dict().items()}
    expected = PeftModel.from_pretrained(base, adapter).merge_and_unload()
    found, told = AutoModelForCausalLM.from_pretrained(out, dtype="auto", output_loading_info=True)
    assert not any(told.values()), told
    weights = expected.state_dict()
    assert weights.keys() == found.state_dict().keys()
    worst = max((tensor - weights[name]).abs().max().item() for name, tensor in found.state_dict().items())
    assert worst <= WORST, worst
    moved = max((tensor - before[name]).abs().max().item() for name, tensor in weights.items())
    assert moved > 1000 * WORST, "the adapter changes nothing"
    tokens = torch.arange(24).reshape(1, -1) % expected.config.vocab_size
    with torch.no_grad():
        log_probs = [each(tokens).logits.log_softmax(-1) for each in (expected, found)]
    apart = (log_probs[0] - log_probs[1]).abs().max().item()
    assert apart <= WORST_LOG_PROB, apart
    print(f"{Path(model).name}: {len(weights)} tensors, at most {worst:.1e} apart, log-probs {apart:.1e}")
