"""Makes test/parity/reference.json: transformers' results with the folders of folders.ts.

    npm run parity:reference -- models

Per folder, in float32: log-probs of each sequence's tokens 1..n-1, a greedy continuation of the prompt, and the logits after it (for the
distribution of sampled tokens). `margin` is the smallest difference between the two largest logits on the way: if it is far above rounding,
equal tokens can be expected."""

import json
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM

OUT = pathlib.Path(__file__).resolve().parent / "reference.json"


def rounded(tensor):
    return [float(f"{x:.7g}") for x in tensor.tolist()]


def main():
    torch.set_num_threads(1)
    reference = {}
    for folder in sorted(path.parent for path in pathlib.Path(sys.argv[1]).glob("*/request.json")):
        request = json.loads((folder / "request.json").read_text())
        model, loading = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
        assert not any(loading.values()), loading
        model.eval()
        with torch.no_grad():
            log_probs = []
            for tokens in request["sequences"]:
                ids = torch.tensor([tokens])
                logs = model(ids).logits[0, :-1].log_softmax(-1)
                log_probs.append(rounded(logs.gather(1, ids[0, 1:, None])[:, 0]))
            prompt = torch.tensor([request["prompt"]])
            tokens = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                                    max_new_tokens=request["newTokens"], pad_token_id=0)
            logits = model(tokens).logits[0, prompt.shape[1] - 1 : -1]
        response = tokens[0, prompt.shape[1]:]
        assert torch.equal(logits.argmax(-1), response) and len(response) == request["newTokens"]
        top = logits.topk(2).values
        margin = (top[:, 0] - top[:, 1]).min().item()
        logs = logits.log_softmax(-1).gather(1, response[:, None])[:, 0]
        reference[folder.name] = {"logProbs": log_probs, "greedy": response.tolist(), "greedyLogProbs": rounded(logs),
                                  "margin": margin}
        if model.config.vocab_size < 1000:
            reference[folder.name]["logits"] = rounded(logits[0])
        print(f"{folder.name}: margin {margin:.1e}, {len(set(response.tolist()))} different tokens")
    OUT.write_text("{\n" + ",\n".join(
        f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in reference.items()) + "\n}\n")


main()
