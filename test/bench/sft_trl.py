"""The steps of `longrun sft` by TRL's SFTTrainer, for `npm run bench sft`.

    python sft_trl.py --model DIR --data FILE --batch 4 --learning-rate 1e-4 [--threads 2]

FILE has one line of JSON for each example, with the texts `prompt` and `completion`, in the order of the steps. Every line on stdin requests a
step. The answer is a line of JSON: loss, tokens, CPU seconds and seconds of the step. The settings are TRL's defaults, except float32,
and layers are not computed again in the backward pass, which is faster.
"""

import argparse
import json
import os
import sys
import time

import torch
from datasets import load_dataset
from torch.utils.data import SequentialSampler
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from transformers.trainer_callback import PrinterCallback
from trl import SFTConfig, SFTTrainer

parser = argparse.ArgumentParser()
for name, kind in [("model", str), ("data", str), ("batch", int), ("learning-rate", float), ("threads", int)]:
    parser.add_argument(f"--{name}", type=kind, required=True)
flags = parser.parse_args()
torch.set_num_threads(flags.threads)

# stdout has the answers alone
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

with open(f"{flags.model}/tokenizer_config.json") as file:
    end = json.load(file)["eos_token"]
tokenizer = PreTrainedTokenizerFast(tokenizer_file=f"{flags.model}/tokenizer.json", eos_token=end, pad_token=end)


class InOrder(SFTTrainer):
    """Takes the examples in the order of the file."""

    def _get_train_sampler(self, *_):
        return SequentialSampler(self.train_dataset)


class Turns(TrainerCallback):
    """Waits for a request before each step, and answers after it."""

    def on_step_begin(self, args, state, control, **_):
        if sys.stdin.readline() == "":
            os._exit(0)
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def on_log(self, args, state, control, logs=None, **_):
        if "loss" not in logs:
            return
        seconds, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        answers.write(json.dumps(dict(loss=logs["loss"], tokens=logs["num_tokens"], cpuSeconds=cpu, seconds=seconds)) + "\n")


trainer = InOrder(
    model=AutoModelForCausalLM.from_pretrained(flags.model, dtype=torch.float32),
    processing_class=tokenizer,
    train_dataset=load_dataset("json", data_files=flags.data, split="train"),
    args=SFTConfig(
        output_dir=f"{flags.data}.trl", save_strategy="no", report_to="none", logging_steps=1, disable_tqdm=True,
        use_cpu=True, bf16=False, gradient_checkpointing=False, num_train_epochs=1, max_length=None,
        per_device_train_batch_size=flags.batch, learning_rate=flags.learning_rate,
    ),
    callbacks=[Turns()],
)
trainer.remove_callback(PrinterCallback)
answers.write(json.dumps(dict(ready=True)) + "\n")
trainer.train()
