"""Makes test/fixtures/saved: output of transformers and torch for learner/engine/model/save.test.ts to read.

    npm run parity:reference -- saved

qwen3/: a folder in bfloat16 shards with reference.json, log-probs in float32. rounding.json: float32 bits and the bfloat16 and float16 bits
to which torch rounds them.
"""

import json
import pathlib
import random
import struct

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

OUT = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "saved"


def model():
    torch.manual_seed(3)
    config = Qwen3Config(vocab_size=96, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=1, head_dim=8, max_position_embeddings=64, bos_token_id=None,
                         eos_token_id=[5, 7])
    model = Qwen3ForCausalLM(config).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm" in key else 0.0, 0.3)
    model.to(torch.bfloat16).save_pretrained(OUT / "qwen3", max_shard_size="8KB")
    for file in (OUT / "qwen3").iterdir():
        file.chmod(0o644)
    # read again, because to() has rounded the rotary frequencies too
    model = Qwen3ForCausalLM.from_pretrained(OUT / "qwen3", dtype=torch.float32)
    tokens = torch.randint(0, 96, (1, 40))
    with torch.no_grad():
        logs = model(tokens).logits[0, :-1].log_softmax(-1)
    log_probs = logs.gather(1, tokens[0, 1:, None])[:, 0].tolist()
    (OUT / "qwen3" / "reference.json").write_text(json.dumps({"tokens": tokens[0].tolist(), "logProbs": log_probs}) + "\n")


def rounding():
    generator = random.Random(5)
    words = [generator.getrandbits(32) for _ in range(200)]
    # ties, their neighbours, subnormals, the largest numbers, infinities and NaN
    words += [base + low for base in (0x3F800000, 0x3F810000, 0x00010000, 0x7F7F0000, 0x38800000, 0x33000000)
              for low in (0x0, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x1000, 0x1001, 0x3000)]
    words += [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0x477FEFFF, 0x477FF000, 1]
    floats = torch.frombuffer(bytearray(struct.pack(f"<{len(words)}I", *words)), dtype=torch.float32)
    bits = {name: [x & 0xFFFF for x in floats.to(dtype).view(torch.int16).tolist()]
            for name, dtype in (("bfloat16", torch.bfloat16), ("float16", torch.float16))}
    (OUT / "rounding.json").write_text(json.dumps({"float32": words, **bits}, separators=(",", ":")) + "\n")


OUT.mkdir(parents=True, exist_ok=True)
model()
rounding()
