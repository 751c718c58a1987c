"""The updates of update.ts in PyTorch, with transformers' Qwen2ForCausalLM and sdpa, float32.

    python update_torch.py --folder DIR --mode padded|trimmed|packed [--compile] [--threads 2] [--micro 8]

padded    as in verl: prompts padded on the left and responses on the right to their limits, logits of all positions
trimmed   micro-batches of similar length, padded to their longest; logits of response positions only
packed    no padding: a micro-batch is one row, attention per sequence; logits of response positions only

Every line on stdin requests an update; the answer is a line of JSON.
"""

import argparse
import copy
import json
import sys
import time

import torch
import torch.nn.functional as F
from transformers import AttentionInterface, Qwen2ForCausalLM
from transformers.integrations.sdpa_attention import repeat_kv

parser = argparse.ArgumentParser()
parser.add_argument("--folder", required=True)
parser.add_argument("--mode", choices=["padded", "trimmed", "packed"], required=True)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--micro", type=int, default=8)
flags = parser.parse_args()
torch.set_num_threads(flags.threads)
with open(f"{flags.folder}/batch.json") as file:
    batch = json.load(file)

segments: list[int] = []


def by_segment(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **_):
    groups = module.num_key_value_groups
    key, value = repeat_kv(key, groups), repeat_kv(value, groups)
    parts, start = [], 0
    for length in segments:
        part = slice(start, start + length)
        parts.append(F.scaled_dot_product_attention(query[:, :, part], key[:, :, part], value[:, :, part], is_causal=True, scale=scaling))
        start += length
    return torch.cat(parts, 2).transpose(1, 2).contiguous(), None


AttentionInterface.register("by_segment", by_segment)
attention = "by_segment" if flags.mode == "packed" else "sdpa"
policy = Qwen2ForCausalLM.from_pretrained(flags.folder, dtype=torch.float32, attn_implementation=attention)


def pick(x, index):
    """Selects the positions that predict responses."""
    if flags.mode == "padded":
        return x[:, -batch["maxResponseTokens"] - 1 : -1]
    return x[0, index[0]] if flags.mode == "packed" else x[index[0], index[1]]


class Critic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = copy.deepcopy(policy.model)
        self.score = torch.nn.Linear(policy.config.hidden_size, 1)
        torch.nn.init.zeros_(self.score.weight)
        torch.nn.init.constant_(self.score.bias, batch["oldValue"])

    def forward(self, index, **inputs):
        hidden = self.trunk(use_cache=False, **inputs).last_hidden_state
        return self.score(pick(hidden, index))[..., 0]


class Policy(torch.nn.Module):
    """log-probs and entropies of the targets"""

    def __init__(self):
        super().__init__()
        self.model = policy

    def forward(self, index, targets, **inputs):
        if flags.mode == "padded":
            logits = pick(self.model(use_cache=False, **inputs).logits, index)
        else:
            logits = self.model.lm_head(pick(self.model.model(use_cache=False, **inputs).last_hidden_state, index))
        logs = torch.log_softmax(logits / batch["temperature"], -1)
        return logs.gather(-1, targets[..., None])[..., 0], -(logs.exp() * logs).sum(-1)


actor, critic = Policy(), Critic()
optimizers = {
    part: torch.optim.AdamW(part.parameters(), batch["learningRate"], weight_decay=batch["weightDecay"], fused=True)
    for part in (actor, critic)
}
run = {part: torch.compile(part) if flags.compile else part for part in (actor, critic)}


def groups():
    order = list(range(len(batch["prompts"])))
    if flags.mode != "padded":  # verl's micro-batches are not sorted by length
        order.sort(key=lambda i: -len(batch["prompts"][i]) - len(batch["responses"][i]))
    return [order[i : i + flags.micro] for i in range(0, len(order), flags.micro)]


def inputs(group):
    """Returns the model's input, the positions that predict responses, targets, and their samples and mask."""
    prompts, responses = [batch["prompts"][i] for i in group], [batch["responses"][i] for i in group]
    if flags.mode == "padded":
        width, height = batch["maxPromptTokens"], batch["maxResponseTokens"]
        ids = torch.tensor([[0] * (width - len(p)) + p + r + [0] * (height - len(r)) for p, r in zip(prompts, responses)])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * (len(p) + len(r)) + [0] * (height - len(r)) for p, r in zip(prompts, responses)])
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        wanted = mask[:, -height:].bool()
        owner = torch.tensor(group)[:, None].expand(-1, height)
        return dict(input_ids=ids, attention_mask=mask, position_ids=positions), (), ids[:, -height:], owner, wanted
    targets = torch.tensor([token for r in responses for token in r])
    owner = torch.tensor([i for i, r in zip(group, responses) for _ in r])
    wanted = torch.ones(len(targets), dtype=torch.bool)
    if flags.mode == "packed":
        global segments
        segments = [len(p) + len(r) for p, r in zip(prompts, responses)]
        ids = torch.tensor([[token for p, r in zip(prompts, responses) for token in p + r]])
        positions = torch.cat([torch.arange(length) for length in segments])[None]
        starts = [sum(segments[:i]) for i in range(len(segments))]
        at = torch.cat([torch.arange(s + len(p) - 1, s + len(p) + len(r) - 1) for s, p, r in zip(starts, prompts, responses)])
        return dict(input_ids=ids, position_ids=positions), (at,), targets, owner, wanted
    width = max(len(p) + len(r) for p, r in zip(prompts, responses))
    ids = torch.tensor([p + r + [0] * (width - len(p) - len(r)) for p, r in zip(prompts, responses)])
    rows = torch.cat([torch.full((len(r),), row) for row, r in enumerate(responses)])
    at = torch.cat([torch.arange(len(p) - 1, len(p) + len(r) - 1) for p, r in zip(prompts, responses)])
    return dict(input_ids=ids), (rows, at), targets, owner, wanted


def optimise(part, loss_of):
    optimizers[part].zero_grad()
    total, count = 0.0, len(batch["prompts"])
    lengths = torch.tensor([len(r) for r in batch["responses"]])
    for group in groups():
        read, index, targets, owner, wanted = inputs(group)
        scale = wanted / (lengths[owner] * count)  # mean over sequences of the mean over tokens
        loss = (loss_of(read, index, targets, owner) * scale).sum()
        loss.backward()
        total += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(part.parameters(), batch["gradientClip"]).item()
    optimizers[part].step()
    return total, norm


def policy_loss(read, index, targets, owner):
    logs, entropies = run[actor](index, targets, **read)
    ratio = torch.exp((logs - batch["proximal"]).clamp(-20, 20))
    advantage = torch.tensor(batch["advantages"], dtype=torch.float32)[owner]
    clipped = ratio.clamp(1 - batch["clipRatio"], 1 + batch["clipRatio"])
    return torch.maximum(-ratio * advantage, -clipped * advantage) - batch["entropyCoefficient"] * entropies


def value_loss(read, index, targets, owner):
    values = run[critic](index, **read)
    returns = torch.tensor(batch["returns"], dtype=torch.float32)[owner]
    old = batch["oldValue"]
    clipped = old + (values - old).clamp(-batch["valueClip"], batch["valueClip"])
    return 0.5 * torch.maximum((values - returns) ** 2, (clipped - returns) ** 2)


def peak_resident():
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def update():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    wall, cpu = time.perf_counter(), time.process_time()
    losses = [*optimise(critic, value_loss)]
    critic_seconds = time.perf_counter() - wall
    losses += optimise(actor, policy_loss)
    seconds = time.perf_counter() - wall
    return dict(seconds=seconds, criticSeconds=critic_seconds, policySeconds=seconds - critic_seconds,
                cpuSeconds=time.process_time() - cpu, peakBytes=peak_resident(), losses=losses)


print(json.dumps({"ready": True, "torch": torch.__version__}), flush=True)
for _ in sys.stdin:
    print(json.dumps(update()), flush=True)
