"""Tokens per second of transformers `generate` with sampling, on the model and the options of generate.ts.

    pip install torch transformers
    python test/bench/generate_hf.py [--rows 64] [--prompt 60:200] [--distinct 64] [--new 160] [--end 0] [--top-p 1]
"""

import argparse
import time

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

parser = argparse.ArgumentParser()
for name, default in [("rows", 64), ("distinct", 64), ("new", 160), ("repeats", 3), ("threads", 1)]:
    parser.add_argument(f"--{name}", type=int, default=default)
parser.add_argument("--prompt", default="60:200")
parser.add_argument("--end", type=float, default=0)
parser.add_argument("--top-p", type=float, default=1)
options = parser.parse_args()

torch.set_num_threads(options.threads)
torch.manual_seed(1)
config = Qwen2Config(vocab_size=2048, hidden_size=128, intermediate_size=384, num_hidden_layers=4,
                     num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
                     bos_token_id=None, eos_token_id=None)
model = Qwen2ForCausalLM(config).eval()
shortest, longest = map(int, options.prompt.split(":"))
distinct = min(options.rows, options.distinct)
prompts = []
for row in range(options.rows):
    which = row % distinct
    length = round(shortest + (longest - shortest) * which / max(1, distinct - 1))
    prompts.append([(which * 31 + i * 7) % config.vocab_size for i in range(length)])
width = max(map(len, prompts))
tokens = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt in prompts])
mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
ends = list(range(round(options.end * config.vocab_size)))

best = {"wall": 0.0, "cpu": 0.0}
for repeat in range(options.repeats + 1):
    start, cpu_start = time.perf_counter(), time.process_time()
    with torch.no_grad():
        result = model.generate(tokens, attention_mask=mask, do_sample=True, temperature=1.0, top_p=options.top_p, top_k=0,
                                max_new_tokens=options.new, eos_token_id=ends or None, pad_token_id=0)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    count = 0
    for row in result[:, width:].tolist():
        end = next((i for i, token in enumerate(row) if token in set(ends)), len(row) - 1)
        count += end + 1
    if repeat > 0:
        best = {"wall": max(best["wall"], count / wall), "cpu": max(best["cpu"], count / cpu)}
print(f"transformers  {best['wall']:.0f} tokens/s, {best['cpu']:.0f} tokens per CPU second ({count} tokens)")
