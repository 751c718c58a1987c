"""Writes a policy of Qwen2.5's shape for a whole run without the model's weights: it writes a plan of 300 to 900 tokens and a short program.

    python gpu_policy.py OUT --tokenizer DIR --config ../fixtures/qwen2.5/3B/config.json [--device cuda]

--tokenizer: the folder that `node test/tokenizers.ts qwen2.5` prints. Needs torch, transformers and safetensors (requirements.txt).

Each token has a random embedding. One MLP of the first layer maps the embedding of a token of the text to the sum of its successors'
embeddings, so a token with several successors is a random choice: the end of the plan, and the digit in the program's prediction. Random
embeddings are not orthogonal, so the choices are not equally likely. All other matrices are random and add almost nothing, so every product
has its usual size. Each token occurs once in the text, because a token alone determines its successors.
"""

import argparse
import glob
import json
import random
import shutil

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

END = 151645  # <|im_end|>
PLAN_TOKENS = 900
PLAN_MAY_END_AT = (300, 450, 600, 750)
# Runs of line feeds and spaces of several lengths: a token for each.
TAIL = " *930\n\n\n\n\nsub.to_csv('submission.csv',index=False)\n\n```\n\n\n\n"
HEAD = "\n\n```python\n\n\nimport pandas;\nsub=pandas.read_csv('input/sample_submission.csv')\n\n\nsub['price']="
DIGITS = ("2", "4", "5", "6", "8", "x")
MOST_CHARACTERS = 12  # of a token
BEAMS = 3000
GAIN = 10  # of a successor's embedding beside the token's own


def byte_characters():
    """Returns the character by which a byte-level BPE vocabulary writes each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


CHARACTERS = byte_characters()


def written(text):
    return "".join(CHARACTERS[byte] for byte in text.encode())


def split(text, vocabulary, used):
    """Returns the text as tokens, none of which is repeated or in `used`, by beam search; adds them to `used`."""
    text, draw = written(text), random.Random(0)
    beams = [[] for _ in range(len(text) + 1)]
    beams[0] = [()]
    for start in range(len(text)):
        kept = sorted(beams[start], key=lambda tokens: len(tokens) + 4 * draw.random())[:BEAMS]
        for tokens in kept:
            for end in range(start + 1, min(start + MOST_CHARACTERS, len(text)) + 1):
                token = vocabulary.get(text[start:end])
                if token is not None and token not in used and token not in tokens:
                    beams[end].append((*tokens, token))
        beams[start] = []
    shortest = min(beams[-1], key=len)
    used.update(shortest)
    return list(shortest)


def successors(vocabulary):
    """Returns for each token of the text the tokens that may follow."""
    line_feed = vocabulary[written("\n")]  # the last token of a prompt
    words = sorted(t for t in vocabulary if t[0] == written(" ") and t[1:].isascii() and t[1:].isalpha() and 4 <= len(t) <= 9)
    plan = [vocabulary[word] for word in random.Random(0).sample(words, PLAN_TOKENS)]
    choices = [vocabulary[digit] for digit in DIGITS]
    used = {line_feed, END, *plan, *choices}
    tail = split(TAIL, vocabulary, used)
    head = split(HEAD, vocabulary, used)
    after = {}
    for chain in ([line_feed, *plan, head[0]], head, [*tail, END]):
        for token, following in zip(chain, chain[1:]):
            after[token] = [following]
    for place in PLAN_MAY_END_AT:
        after[plan[place]].append(head[0])
    after[head[-1]] = choices
    for choice in choices:
        after[choice] = [tail[0]]
    return after


@torch.no_grad()
def remember(model, after):
    """Sets the embeddings, and the first layer's MLP as the map from a token's embedding to its successors'."""
    width, vocabulary = model.config.hidden_size, model.config.vocab_size
    device = model.model.norm.weight.device
    embeddings = torch.randn(vocabulary, width, device=device)
    embeddings[:, 0] = 0  # for the constant
    embeddings /= embeddings.norm(dim=1, keepdim=True)
    keys = embeddings[torch.tensor(list(after))].double()
    targets = torch.stack([embeddings[each].sum(0) / len(each) ** 0.5 for each in after.values()]).double()
    linear = (keys.T @ torch.linalg.solve(keys @ keys.T, targets)).T.float()  # [width, width]: linear @ key = target
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.mul_(1e-3)
        layer.mlp.down_proj.weight.mul_(1e-3)
    mlp = model.model.layers[0].mlp
    normed = (width / 2) ** 0.5  # of the constant 1 beside an embedding of length 1, after the norm
    opened = 4 / (1 + torch.e**-4)  # silu(4)
    mlp.gate_proj.weight[:width] = 0
    mlp.gate_proj.weight[:width, 0] = 4 / normed
    mlp.up_proj.weight[:width] = torch.eye(width)
    mlp.down_proj.weight[:, :width] = GAIN * linear / (opened * normed)
    embeddings[:, 0] = 1
    model.model.embed_tokens.weight.copy_(embeddings)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--config", required=True)
    parser.add_argument("--device", default="cpu")
    flags = parser.parse_args()
    with open(f"{flags.tokenizer}/tokenizer.json") as file:
        vocabulary = json.load(file)["model"]["vocab"]
    with open(flags.config) as file:
        config = json.load(file)
    torch.manual_seed(0)
    with torch.device(flags.device):
        torch.set_default_dtype(torch.bfloat16)
        model = Qwen2ForCausalLM(Qwen2Config(**config))
        torch.set_default_dtype(torch.float32)
        remember(model, successors(vocabulary))
    model.save_pretrained(flags.out, max_shard_size="100GB")
    for file in glob.glob(f"{flags.tokenizer}/*.json"):
        shutil.copy(file, flags.out)
    with open(f"{flags.out}/generation_config.json", "w") as file:
        json.dump({"eos_token_id": [END]}, file)
