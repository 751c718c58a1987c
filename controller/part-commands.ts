/** The commands that are programs of other parts: they read their own arguments, and `--help` of each is their own text. */
import type { Parts } from "./parts.ts";

export interface PartCommand {
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
    description: "look at a prepared task folder",
    words: ["check", "prompt", "drop"],
    options: ["--task", "--model", "--max-tokens", "--rows", "--style", "--out", "--json"],
  },
  report: { part: "report", description: "write the report of a run folder", options: [] },
  pretrain: {
    part: "pretrain",
    description: "make a starting policy",
    options: ["--out", "--seed", "--texts", "--steps", "--threads", "--batch-size", "--learning-rate"],
  },
  logprobs: { part: "logProbs", description: "log-probs of tokens", options: [...MODEL, "--tokens"] },
  generate: {
    part: "generate",
    description: "responses to prompts",
    options: [...MODEL, "--prompts", "--max-tokens", "--temperature", "--seed"],
  },
  model: {
    part: "model",
    description: "what a model folder holds, or another of the same",
    words: ["info", "convert", "merge"],
    options: [
      ...["--check", "--json", "--plan", "--tokens", "--batch", "--device", "--memory-bytes"],
      ...["--out", "--dtype", "--shard-size", "--model", "--adapter"],
    ],
  },
};
