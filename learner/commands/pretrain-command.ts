/** `longrun pretrain`. Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted (nothing is written). */
import { parseArgs } from "node:util";
import { defaultPretrain, type PretrainProgress, pretrain } from "../pretrain/pretrain.ts";
import { InputError, runCommand, wholeNumber } from "./command.ts";

/** Git ignores this folder. The quickstart's policy is only replaced with an explicit --out. */
const DEFAULT_OUT = "policies/pretrained";

const USAGE = `Usage: longrun pretrain [--out DIR] [--seed N] [--texts N] [--steps N] [--threads N]
                        [--batch-size N] [--learning-rate R]
    Makes a starting policy for the bundled tasks from generated programs, in DIR (${DEFAULT_OUT}).
    --texts: programs of the corpus (${defaultPretrain.texts}). --steps (${defaultPretrain.steps}) of --batch-size texts (${defaultPretrain.batchSize}).
    --learning-rate: at its highest (${defaultPretrain.learningRate}). --threads: 0 takes all cores.
    --seed (${defaultPretrain.seed}): the same seed and number of threads give the same weights. Ctrl-C: nothing is written.`;

const text = { type: "string" } as const;
const options = {
  ...{ out: { ...text, default: DEFAULT_OUT }, seed: text, texts: text, steps: text, threads: text },
  ...{ "batch-size": text, "learning-rate": text },
};

async function main(): Promise<number> {
  const { values } = parseArgs({ options });
  const count = (name: keyof typeof options, fallback: number, least: number) =>
    wholeNumber(values[name] ?? String(fallback), `--${name}`, least);
  const learningRate = Number(values["learning-rate"] ?? defaultPretrain.learningRate);
  if (!(Number.isFinite(learningRate) && learningRate > 0))
    throw new InputError(`--learning-rate is ${values["learning-rate"]}; give a number above 0`);
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
