"""Measures the work of gpu/speed.ts in PyTorch, with transformers' Qwen2ForCausalLM and sdpa on the same device.

    python gpu_torch.py --folder DIR --device cuda:0 --train lora|all --compute float32|tf32|bfloat16 --rank 16 --threads 0

Reads work.json of the folder. Every line on stdin requests a PPO step (an optimiser step of the critic, one of the policy) and greedy
tokens. The answer is a line of JSON: seconds of each, and losses, which must be equal on both sides before the first step.
compute bfloat16: autocast, with float32 weights if all are trained, and bfloat16 weights if they are frozen.
tf32: float32, of whose mantissa tensor cores multiply 10 bits.
"""

import argparse
import copy
import json
import sys
import time

import torch
import torch.nn.functional as F
from transformers import Qwen2ForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--folder", required=True)
parser.add_argument("--device", required=True)
parser.add_argument("--train", choices=["lora", "all"], required=True)
parser.add_argument("--compute", choices=["float32", "tf32", "bfloat16"], required=True)
parser.add_argument("--rank", type=int, required=True)
parser.add_argument("--threads", type=int, default=0)
flags = parser.parse_args()
if flags.threads:
    torch.set_num_threads(flags.threads)
torch.set_float32_matmul_precision("high" if flags.compute == "tf32" else "highest")
with open(f"{flags.folder}/work.json") as file:
    work = json.load(file)
device, half, lora = torch.device(flags.device), flags.compute == "bfloat16", flags.train == "lora"
ids = torch.tensor(work["tokens"], device=device)  # [samples, prompt + response]
prompt, targets = work["promptTokens"], ids[:, work["promptTokens"]:]
advantages = torch.tensor(work["advantages"], device=device)[:, None]
returns = torch.tensor(work["returns"], device=device)[:, None]


class Lora(torch.nn.Module):
    """W x + B A x, with W frozen (alpha equals the rank)"""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.a = torch.nn.Parameter(torch.randn(flags.rank, base.in_features, device=device) * 0.02)
        self.b = torch.nn.Parameter(torch.zeros(base.out_features, flags.rank, device=device))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.a), self.b)


def adapted(model):
    """The same frozen weights with an adapter of its own"""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    shared = {id(parameter): parameter for parameter in model.parameters()}
    clone = copy.deepcopy(model, shared)
    for layer in clone.model.layers:
        for part in (layer.self_attn, layer.mlp):
            for name, child in list(part.named_children()):
                if isinstance(child, torch.nn.Linear):
                    setattr(part, name, Lora(child))
    return clone


dtype = torch.bfloat16 if half and lora else torch.float32
base = Qwen2ForCausalLM.from_pretrained(flags.folder, dtype=dtype, attn_implementation="sdpa").to(device)
policy = adapted(base) if lora else base
trunk = adapted(base).model if lora else copy.deepcopy(base.model)
head = torch.nn.Linear(base.config.hidden_size, 1, device=device)
torch.nn.init.zeros_(head.weight)
torch.nn.init.zeros_(head.bias)
optimizers = {
    name: torch.optim.AdamW([p for p in parameters if p.requires_grad], work["learningRate"], weight_decay=0, fused=True)
    for name, parameters in {
        "policy": [*policy.parameters()], "critic": [*trunk.parameters(), *head.parameters()],
    }.items()
}


def autocast():
    return torch.autocast(device.type, torch.bfloat16, enabled=half)


def wait():
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def optimise(name, loss):
    optimizers[name].zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(optimizers[name].param_groups[0]["params"], work["gradientClip"])
    optimizers[name].step()
    return loss.item()


def critic_step():
    with autocast():
        hidden = trunk(input_ids=ids[:, :-1], use_cache=False).last_hidden_state[:, prompt - 1:]
    values = head(hidden.float())[..., 0]
    return optimise("critic", (0.5 * (values - returns) ** 2).mean())


def policy_step():
    with autocast():
        hidden = policy.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state[:, prompt - 1:]
        logits = policy.lm_head(hidden)
    logs = -F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), reduction="none").view(targets.shape)
    ratio = torch.exp((logs - work["proximal"]).clamp(-20, 20))
    clipped = ratio.clamp(1 - work["clipRatio"], 1 + work["clipRatio"])
    return optimise("policy", torch.maximum(-ratio * advantages, -clipped * advantages).mean())


def generate():
    with torch.no_grad(), autocast():
        policy.eval()
        policy.generate(ids[:, :prompt], attention_mask=torch.ones_like(ids[:, :prompt]), do_sample=False, temperature=None,
                        top_p=None, top_k=None, max_new_tokens=work["newTokens"], min_new_tokens=work["newTokens"],
                        pad_token_id=0)
        policy.train()


def timed(once):
    wait()
    start = time.perf_counter()
    result = once()
    wait()
    return time.perf_counter() - start, result


print(json.dumps({"ready": True, "torch": torch.__version__}), flush=True)
for _ in sys.stdin:
    step, losses = timed(lambda: [critic_step(), policy_step()])
    generation, _nothing = timed(generate)
    print(json.dumps(dict(step=step, generation=generation, losses=losses)), flush=True)
