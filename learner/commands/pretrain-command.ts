/** `longrun pretrain`. Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted (nothing is written). */

import { writeFileSync } from "node:fs";
import type { Values } from "../../proto/command-line.ts";
import { CORPUS_TASKS, defaultCorpus, makeCorpus } from "../pretrain/corpus.ts";
import { defaultPretrain, type PretrainProgress, pretrain } from "../pretrain/pretrain.ts";
import { exampleLine } from "../sft/examples.ts";
import { InputError, number, runCommand, whole } from "./command.ts";

/** Git ignores this folder. The quickstart's policy is only replaced with an explicit --out. */
const DEFAULT_OUT = "policies/pretrained";

const share = number("a number from 0 to 1", (value) => value >= 0 && value <= 1);

export const PRETRAIN = {
  name: "longrun pretrain",
  description: "make a starting policy for the bundled tasks from generated programs",
  options: {
    out: { value: "DIR", help: "model folder", default: DEFAULT_OUT },
    seed: {
      value: "S",
      help: "the same seed and number of threads give the same weights",
      default: String(defaultPretrain.seed),
      as: whole(0),
    },
    texts: { value: "N", help: "programs of the corpus", default: String(defaultPretrain.texts), as: whole(1) },
    steps: { value: "N", help: "steps of --batch-size texts", default: String(defaultPretrain.steps), as: whole(1) },
    threads: { value: "N", help: "0: all cores", default: String(defaultPretrain.threads), as: whole(0) },
    "batch-size": { value: "N", help: "texts of a step", default: String(defaultPretrain.batchSize), as: whole(1) },
    "learning-rate": {
      value: "R",
      help: "at its highest",
      default: String(defaultPretrain.learningRate),
      as: number("a number above 0", (value) => value > 0),
    },
    "export-corpus": { value: "FILE", help: "train nothing, and write the corpus as lines that longrun sft reads" },
    tasks: { value: "LIST", help: `with --export-corpus: of ${CORPUS_TASKS.join(",")} (default: all)`, as: tasksOf },
    "mistake-share": {
      value: "SHARE",
      help: `with --export-corpus: programs with a mistake (default: ${defaultCorpus.mistakeShare})`,
      as: share,
    },
    "improve-share": {
      value: "SHARE",
      help: `with --export-corpus: texts that improve a shown program (default: ${defaultCorpus.improveShare})`,
      as: share,
    },
  },
  notes: "Ctrl-C: nothing is written.",
  examples: [
    "longrun pretrain --out policies/mine --seed 1",
    "longrun pretrain --export-corpus corpus.jsonl --texts 60 --mistake-share 0",
  ],
} as const;

function tasksOf(text: string, option: string): string[] {
  const tasks = text.split(",").map((name) => name.trim());
  const unknown = tasks.find((name) => !CORPUS_TASKS.includes(name));
  if (unknown !== undefined) throw new InputError(`${option} has ${unknown}; known are ${CORPUS_TASKS.join(", ")}`);
  return tasks;
}

async function main(values: Values<typeof PRETRAIN.options>): Promise<number> {
  const { seed, texts, tasks, improveShare, mistakeShare, exportCorpus, ...training } = values;
  if (exportCorpus !== undefined) {
    writeCorpus(exportCorpus, {
      seed,
      texts,
      improveShare: improveShare ?? defaultCorpus.improveShare,
      mistakeShare: mistakeShare ?? defaultCorpus.mistakeShare,
      tasks,
    });
    return 0;
  }
  for (const [name, value] of Object.entries({ tasks, "mistake-share": mistakeShare, "improve-share": improveShare }))
    if (value !== undefined) throw new InputError(`--${name} is of --export-corpus; give that too, or leave it out`);
  const interrupted = new AbortController();
  process.once("SIGINT", () => interrupted.abort());
  process.once("SIGTERM", () => interrupted.abort());
  try {
    const { loss, steps, seconds } = await pretrain({
      ...training,
      seed,
      texts,
      signal: interrupted.signal,
      onProgress: progressLine(process.stderr),
    });
    process.stderr.write("\n");
    console.log(`${values.out}: ${steps} steps in ${Math.round(seconds)} s, loss ${loss.toFixed(3)}`);
    return 0;
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    process.stderr.write("\ninterrupted, nothing was written\n");
    return 130;
  }
}

/** Writes the corpus as examples of supervised training. */
function writeCorpus(file: string, options: Parameters<typeof makeCorpus>[0]): void {
  const corpus = makeCorpus(options);
  const lines = corpus.map(({ messages, response, task, kind, mistake }) =>
    exampleLine({ prompt: messages, response }, { task, kind, ...(mistake !== undefined && { mistake }) }),
  );
  try {
    writeFileSync(file, lines.join(""));
  } catch (cause) {
    throw new InputError(`--export-corpus: ${(cause as Error).message}`, { cause });
  }
  console.log(`${file}: ${corpus.length} texts`);
}

/** Shows progress: on a terminal one line that is overwritten, elsewhere a line from time to time. */
function progressLine(out: NodeJS.WriteStream): (progress: PretrainProgress) => void {
  const text = (progress: PretrainProgress) => {
    if (progress.phase !== "train")
      return { corpus: "writing the corpus", tokenizer: "learning the vocabulary", save: "saving" }[progress.phase];
    const { step, steps, loss, tokensPerSecond, secondsLeft } = progress;
    const speed = `${Math.round(tokensPerSecond)} tokens/s  ${Math.ceil(secondsLeft)} s left`;
    return `step ${step} of ${steps}  loss ${loss.toFixed(3)}  ${speed}`;
  };
  return (progress) => {
    if (out.isTTY) out.write(`\r\x1b[K${text(progress)}`);
    else if (progress.phase !== "train" || progress.step % 50 === 0) out.write(`${text(progress)}\n`);
  };
}

if (import.meta.main) await runCommand(PRETRAIN, main);
