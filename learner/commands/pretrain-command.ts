/** `longrun pretrain`. Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted (nothing is written). */

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { CORPUS_TASKS, defaultCorpus, makeCorpus } from "../pretrain/corpus.ts";
import { defaultPretrain, type PretrainProgress, pretrain } from "../pretrain/pretrain.ts";
import { exampleLine } from "../sft/examples.ts";
import { InputError, runCommand, wholeNumber } from "./command.ts";

/** Git ignores this folder. The quickstart's policy is only replaced with an explicit --out. */
const DEFAULT_OUT = "policies/pretrained";

const USAGE = `Usage: longrun pretrain [--out DIR] [--seed N] [--texts N] [--steps N] [--threads N]
                        [--batch-size N] [--learning-rate R]
       longrun pretrain --export-corpus FILE [--seed N] [--texts N] [--tasks LIST] [--mistake-share S] [--improve-share S]
    Makes a starting policy for the bundled tasks from generated programs, in DIR (${DEFAULT_OUT}).
    --texts: programs of the corpus (${defaultPretrain.texts}). --steps (${defaultPretrain.steps}) of --batch-size texts (${defaultPretrain.batchSize}).
    --learning-rate: at its highest (${defaultPretrain.learningRate}). --threads: 0 takes all cores.
    --export-corpus: trains nothing and writes the corpus as lines of messages, which longrun sft reads.
    --tasks: of ${CORPUS_TASKS.join(",")} (all). --mistake-share: programs with a mistake (${defaultCorpus.mistakeShare});
    --improve-share: texts that improve a shown program (${defaultCorpus.improveShare}). 0: none.
    --seed (${defaultPretrain.seed}): the same seed and number of threads give the same weights. Ctrl-C: nothing is written.`;

const text = { type: "string" } as const;
const options = {
  ...{ out: { ...text, default: DEFAULT_OUT }, seed: text, texts: text, steps: text, threads: text },
  ...{ "batch-size": text, "learning-rate": text, "export-corpus": text, tasks: text },
  ...{ "mistake-share": text, "improve-share": text },
};

async function main(): Promise<number> {
  const { values } = parseArgs({ options });
  const count = (name: keyof typeof options, fallback: number, least: number) =>
    wholeNumber(values[name] ?? String(fallback), `--${name}`, least);
  const learningRate = Number(values["learning-rate"] ?? defaultPretrain.learningRate);
  if (!(Number.isFinite(learningRate) && learningRate > 0))
    throw new InputError(`--learning-rate is ${values["learning-rate"]}; give a number above 0`);
  if (values["export-corpus"] !== undefined) {
    const share = (name: "mistake-share" | "improve-share", fallback: number) => {
      const given = Number(values[name] ?? fallback);
      if (given >= 0 && given <= 1) return given;
      throw new InputError(`--${name} is ${values[name]}; give a number from 0 to 1`);
    };
    exportCorpus(values["export-corpus"], {
      seed: count("seed", defaultPretrain.seed, 0),
      texts: count("texts", defaultPretrain.texts, 1),
      improveShare: share("improve-share", defaultCorpus.improveShare),
      mistakeShare: share("mistake-share", defaultCorpus.mistakeShare),
      tasks: values.tasks?.split(",").map((name) => name.trim()),
    });
    return 0;
  }
  for (const name of ["tasks", "mistake-share", "improve-share"] as const)
    if (values[name] !== undefined)
      throw new InputError(`--${name} is of --export-corpus; give that too, or leave it out`);
  const interrupted = new AbortController();
  process.once("SIGINT", () => interrupted.abort());
  process.once("SIGTERM", () => interrupted.abort());
  try {
    const { loss, steps, seconds } = await pretrain({
      out: values.out,
      seed: count("seed", defaultPretrain.seed, 0),
      texts: count("texts", defaultPretrain.texts, 1),
      steps: count("steps", defaultPretrain.steps, 1),
      batchSize: count("batch-size", defaultPretrain.batchSize, 1),
      learningRate,
      threads: count("threads", defaultPretrain.threads, 0),
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
function exportCorpus(file: string, options: Parameters<typeof makeCorpus>[0]): void {
  const unknown = options.tasks?.find((name) => !CORPUS_TASKS.includes(name));
  if (unknown !== undefined) throw new InputError(`--tasks has ${unknown}; known are ${CORPUS_TASKS.join(", ")}`);
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

await runCommand(USAGE, main);
