"""The same work as step.ts in PyTorch eager with transformers' Qwen2ForCausalLM and sdpa.

    python3 test/bench/step_torch.py [--threads 1] [--micro 8] [--repeat 3] [--size quickstart|large]
"""

import argparse
import random
import time

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--micro", type=int, default=8)
parser.add_argument("--repeat", type=int, default=3)
parser.add_argument("--size", default="quickstart")
parser.add_argument("--sequences", type=int, default=64)
flags = parser.parse_args()
torch.set_num_threads(flags.threads)
torch.manual_seed(0)
random.seed(0)

SIZES = {
    "quickstart": dict(vocab_size=2048, hidden_size=128, intermediate_size=384, num_hidden_layers=4, num_attention_heads=4),
    "large": dict(vocab_size=8192, hidden_size=512, intermediate_size=1536, num_hidden_layers=8, num_attention_heads=8),
}
config = Qwen2Config(**SIZES[flags.size], num_key_value_heads=2, tie_word_embeddings=True, max_position_embeddings=1024)
config._attn_implementation = "sdpa"
model = Qwen2ForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), 1e-5)
lengths = sorted(((60 + random.randrange(140), 100 + random.randrange(40)) for _ in range(flags.sequences)), key=sum, reverse=True)
count = sum(map(sum, lengths))
print(f"{count} tokens, {sum(p.numel() for p in model.parameters())} parameters, {flags.threads} threads, torch {torch.__version__}")


def log_probs(group):
    ids = torch.randint(0, config.vocab_size, (len(group), max(map(sum, group))))
    states = model.model(ids, use_cache=False).last_hidden_state
    picked = torch.cat([states[i, p - 1 : p + r - 1] for i, (p, r) in enumerate(group)])
    targets = torch.cat([ids[i, p : p + r] for i, (p, r) in enumerate(group)])
    logs = torch.log_softmax(model.lm_head(picked) / 0.7, -1)
    return logs.gather(1, targets[:, None])[:, 0], -(logs.exp() * logs).sum(-1)


def groups():
    return [lengths[i : i + flags.micro] for i in range(0, len(lengths), flags.micro)]


@torch.no_grad()
def evaluate():
    for group in groups():
        log_probs(group)


def update():
    optimizer.zero_grad()
    for group in groups():
        logs, entropies = log_probs(group)
        ratio = torch.exp((logs - logs.detach()).clamp(-20, 20))
        loss = torch.maximum(-ratio, -ratio.clamp(0.8, 1.2)).sum() - 0.001 * entropies.sum()
        (loss / count).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


for name, work in ("evaluate", evaluate), ("policy update", update):
    work()
    walls, cpus = [], []
    for _ in range(flags.repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    print(f"{name:16} wall {min(walls) * 1e3:.0f} ms, cpu {min(cpus) * 1e3:.0f} ms, {count / min(walls):.0f} tokens/s")
