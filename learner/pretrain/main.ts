/** `longrun pretrain`. Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted (nothing is written then). */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { defaultPretrain, type PretrainProgress, pretrain } from "./pretrain.ts";

const defaultOut = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));

const USAGE = `usage: longrun pretrain [--out DIR] [--seed N] [--texts N] [--steps N] [--minutes N] [--threads N]
                        [--batch-size N] [--learning-rate R]
    Makes a starting policy for the bundled tasks from generated programs, by default that of the quickstart, in its place.
    --texts: programs of the corpus (${defaultPretrain.texts}). --steps (${defaultPretrain.steps}) of --batch-size texts (${defaultPretrain.batchSize}),
    or as many as fit into --minutes. --learning-rate: at its highest (${defaultPretrain.learningRate}). --threads: 0 takes all cores.
    --seed (${defaultPretrain.seed}): the same seed and number of threads give the same weights. Ctrl-C: nothing is written.`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      out: { type: "string", default: defaultOut },
      seed: { type: "string" },
      texts: { type: "string" },
      steps: { type: "string" },
      minutes: { type: "string" },
      threads: { type: "string" },
      "batch-size": { type: "string" },
      "learning-rate": { type: "string" },
      help: { type: "boolean" },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const count = (name: "seed" | "texts" | "steps" | "threads" | "batch-size", fallback: number, least: number) => {
    const value = values[name] === undefined ? fallback : Number(values[name]);
    if (Number.isSafeInteger(value) && value >= least) return value;
    throw new RangeError(`--${name} is ${values[name]}; give a whole number of at least ${least}`);
  };
  const positive = (name: "minutes" | "learning-rate") => {
    const value = values[name] === undefined ? undefined : Number(values[name]);
    if (value === undefined || (Number.isFinite(value) && value > 0)) return value;
    throw new RangeError(`--${name} is ${values[name]}; give a number above 0`);
  };
  const minutes = positive("minutes");
  const interrupted = new AbortController();
  process.once("SIGINT", () => interrupted.abort());
  process.once("SIGTERM", () => interrupted.abort());
  const options = {
    out: values.out,
    seed: count("seed", defaultPretrain.seed, 0),
    texts: count("texts", defaultPretrain.texts, 1),
    steps: count("steps", minutes === undefined ? defaultPretrain.steps : 1_000_000, 1),
    minutes,
    batchSize: count("batch-size", defaultPretrain.batchSize, 1),
    learningRate: positive("learning-rate") ?? defaultPretrain.learningRate,
    threads: count("threads", defaultPretrain.threads, 0),
    signal: interrupted.signal,
    onProgress: progressLine(process.stderr),
  };
  try {
    const { loss, steps, seconds } = await pretrain(options);
    process.stderr.write("\n");
    console.log(`${options.out}: ${steps} steps in ${Math.round(seconds)} s, loss ${loss.toFixed(3)}`);
    return 0;
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    process.stderr.write("\ninterrupted, nothing was written\n");
    return 130;
  }
}

/** One line that is written over on a terminal, now and then a line of its own elsewhere. */
function progressLine(out: NodeJS.WriteStream): (progress: PretrainProgress) => void {
  const text = (progress: PretrainProgress) => {
    if (progress.phase !== "train")
      return { corpus: "writing the corpus", tokenizer: "learning the vocabulary", save: "saving" }[progress.phase];
    const { step, steps, loss, tokensPerSecond, secondsLeft } = progress;
    const total = steps >= 1_000_000 ? "" : ` of ${steps}`;
    return `step ${step}${total}  loss ${loss.toFixed(3)}  ${Math.round(tokensPerSecond)} tokens/s  ${Math.ceil(secondsLeft)} s left`;
  };
  return (progress) => {
    if (out.isTTY) out.write(`\r\x1b[K${text(progress)}`);
    else if (progress.phase !== "train" || progress.step % 50 === 0) out.write(`${text(progress)}\n`);
  };
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error) => {
    const badInput = error instanceof RangeError || (error as { code?: string }).code?.startsWith("ERR_PARSE_ARGS");
    process.stderr.write(`${badInput ? (error as Error).message.split(". ")[0] : ((error as Error).stack ?? error)}\n`);
    process.exitCode = badInput ? 2 : 1;
  },
);
