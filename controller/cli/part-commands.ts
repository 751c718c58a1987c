/** The commands that are programs of other parts: they read their own arguments, and `--help` of each is their own text. */
import type { Parts } from "../parts.ts";

interface PartCommand {
  part: keyof Parts;
  description: string;
  /** First arguments that choose what is done. */
  words?: readonly string[];
  /** For completion. */
  options: readonly string[];
}

const MODEL = ["--model", "--adapter", "--device", "--threads"];

export const PART_COMMANDS: Record<string, PartCommand> = {
  grade: {
    part: "grade",
    description: "grade submissions, or one execution",
    options: [
      ...["--task", "--answers", "--submission", "--json", "--batch", "--outcome", "--exit-status"],
      ...["--inserted", "--seen", "--forged"],
    ],
  },
  task: {
    part: "task",
    description: "make a task folder from a table, or check one",
    words: ["init", "check", "prompt", "drop"],
    options: [
      ...["--task", "--model", "--max-tokens", "--rows", "--style", "--out", "--json"],
      ...["--from", "--target", "--metric", "--id", "--name", "--test-share", "--seed"],
      ...["--encoding", "--keep-missing-labels"],
    ],
  },
  report: { part: "report", description: "write the report of a run folder", options: [] },
  pretrain: {
    part: "pretrain",
    description: "make a starting policy",
    options: [
      ...["--out", "--seed", "--texts", "--steps", "--threads", "--batch-size", "--learning-rate"],
      ...["--export-corpus", "--tasks", "--mistake-share", "--improve-share"],
    ],
  },
  sft: {
    part: "sft",
    description: "train a model on given answers before a run",
    options: [
      ...[...MODEL, "--data", "--out", "--best", "--task", "--style", "--max-tokens", "--rank", "--alpha", "--targets"],
      ...["--epochs", "--batch-size", "--micro-batch-size", "--learning-rate", "--schedule", "--warmup-share"],
      ...["--gradient-clip", "--weight-decay", "--seed", "--held-out", "--checkpoint-seconds", "--compute"],
      ...["--plan", "--json"],
    ],
  },
  logprobs: { part: "logProbs", description: "compute log-probs of tokens", options: [...MODEL, "--tokens"] },
  generate: {
    part: "generate",
    description: "generate responses to prompts",
    options: [...MODEL, "--prompts", "--max-tokens", "--temperature", "--seed", "--show-prompt"],
  },
  model: {
    part: "model",
    description: "fetch a model, describe a model folder, tokenize a text, or convert or merge it",
    words: ["fetch", "info", "tokenize", "convert", "merge"],
    options: [
      ...["--check", "--json", "--plan", "--tokens", "--batch", "--compute", "--device", "--gpus", "--memory-bytes"],
      ...["--out", "--dtype", "--shard-size", "--model", "--adapter", "--revision"],
    ],
  },
  results: {
    part: "results",
    description: "copy a run's checkpoint and best program to S3, and back",
    words: ["push", "pull"],
    options: ["--keep-last", "--out", "--json"],
  },
  serve: {
    part: "serve",
    description: "serve a policy behind an HTTP API like OpenAI's",
    options: [
      ...[...MODEL, "--run", "--host", "--port", "--api-key", "--no-key", "--served-model-name", "--answer-prefix"],
      ...["--slots", "--context", "--max-waiting", "--tls", "--probe-port", "--drain-seconds"],
      ...["--vllm", "--adapter-folder", "--model-name"],
    ],
  },
};
