/** The arguments of `longrun sft`. */
import { parseArgs } from "node:util";
import { PROJECTIONS } from "../engine/index.ts";
import { FINE_TUNE_DEFAULTS as D, type FineTuneSettings, LEARNING_RATES } from "../sft/fine-tune.ts";
import { InputError, MODEL_OPTIONS, required, wholeNumber } from "./command.ts";

const SCHEDULES = ["Constant", "Linear", "Cosine"] as const;
const STYLES = ["Paper", "Short"] as const;
/** The engine's word for each value of `learner.compute`. */
const COMPUTE = { Float32: "float32", TF32: "tf32", BFloat16: "bfloat16" } as const;
/** Share of the examples that are measured and not trained on. */
const HELD_OUT = 0.1;

export const SFT_USAGE = `Usage: longrun sft --model DIR --data PATH... --out DIR [--rank N [--alpha N] [--targets LIST] | --adapter DIR]
       [--epochs N] [--batch-size N] [--learning-rate R] [--schedule Constant|Linear|Cosine] [--held-out SHARE] [--plan] [--json]
Trains a model on given answers (supervised fine-tuning): cross-entropy of the responses' tokens. Every weight is trained, or
with --rank or --adapter a LoRA adapter. The same command goes on after Ctrl-C or a failure, from the newest checkpoint.

--data       may be repeated: a file of JSON lines with messages, the last one the assistant's, or with prompt and completion;
             a run folder: its valid samples; a folder of Python programs that solve --task
--best       of a run folder: so many samples of each task, the best ones (all); two with the same program count once
--task       of a folder of programs: the task folder, or the name of a bundled task, whose prompt is used
--style      of that prompt: Paper or Short (Paper); use the run's prompts.style
--max-tokens longest prompt with its response; longer examples are left out and counted (the model's positions)
--out        model folder, or with an adapter a folder of PEFT; also has sft.jsonl, a line for each step
--rank       of a new adapter; --alpha (rank), --targets: of ${PROJECTIONS.join(",")} (all)
--adapter    folder of PEFT that is trained further
--epochs     (${D.epochs}) of steps of --batch-size examples (${D.batchSize}), at most --micro-batch-size of them in memory at once (${D.microBatchSize})
--learning-rate  the highest (${LEARNING_RATES.full}; ${LEARNING_RATES.lora} of an adapter); it rises during --warmup-share of the steps (${D.warmupShare}) and then
             follows --schedule (${D.schedule})
--gradient-clip (${D.gradientClip}; 0: none), --weight-decay (${D.weightDecay}), --seed (${D.seed}) of the order and of what is held out
--held-out   share of the examples that are measured, not trained on (${HELD_OUT}); 0: none
--checkpoint-seconds  least seconds between checkpoints; 0: after each step (so many that they take a tenth of the time)
--compute    Float32, TF32 or BFloat16 (Float32); the last two need a GPU. --threads (0: all cores), --device auto|cpu|cuda:N
--plan       prints data, steps and memory, and trains nothing. --json: an object for each line`;

const text = { type: "string" } as const;
const flag = { type: "boolean", default: false } as const;
const options = {
  ...MODEL_OPTIONS,
  ...{ data: { type: "string", multiple: true } as const, out: text, best: text, task: text, style: text },
  ...{ "max-tokens": text, rank: text, alpha: text, targets: text, epochs: text, "batch-size": text },
  ...{ "micro-batch-size": text, "learning-rate": text, schedule: text, "warmup-share": text, "gradient-clip": text },
  ...{ "weight-decay": text, seed: text, "held-out": text, "checkpoint-seconds": text, compute: text },
  ...{ plan: flag, json: flag },
};

/** @throws InputError naming the option */
export function sftOptions() {
  const { values } = parseArgs({ options });
  type Name = keyof typeof options;
  const whole = (name: Name, least: number) =>
    values[name] === undefined ? undefined : wholeNumber(String(values[name]), `--${name}`, least);
  const number = (name: Name, isGood: (value: number) => boolean, what: string) => {
    const given = values[name];
    if (given === undefined) return undefined;
    const value = Number(given);
    if (String(given).trim() !== "" && Number.isFinite(value) && isGood(value)) return value;
    throw new InputError(`--${name} is ${given}; give ${what}`);
  };
  const share = (name: Name) => number(name, (value) => value >= 0 && value < 1, "a number of at least 0 and below 1");
  const least0 = (name: Name) => number(name, (value) => value >= 0, "a number of at least 0");
  const choice = <T extends string>(name: Name, known: readonly T[], fallback: T): T => {
    const given = (values[name] ?? fallback) as T;
    if (known.includes(given)) return given;
    throw new InputError(`--${name} is ${given}; give ${known.join(", ")}`);
  };
  const lora = loraOf(values.rank === undefined ? undefined : whole("rank", 1), least0("alpha"), values.targets);
  if (lora && values.adapter !== undefined)
    throw new InputError("--rank makes a new adapter and --adapter trains one further; give one of the two");
  const adapts = lora !== undefined || values.adapter !== undefined;
  const settings: FineTuneSettings = {
    epochs: whole("epochs", 1) ?? D.epochs,
    batchSize: whole("batch-size", 1) ?? D.batchSize,
    microBatchSize: whole("micro-batch-size", 1) ?? D.microBatchSize,
    learningRate:
      number("learning-rate", (value) => value > 0, "a number above 0") ?? LEARNING_RATES[adapts ? "lora" : "full"],
    schedule: choice("schedule", SCHEDULES, D.schedule),
    warmupShare: share("warmup-share") ?? D.warmupShare,
    gradientClip: least0("gradient-clip") ?? D.gradientClip,
    weightDecay: least0("weight-decay") ?? D.weightDecay,
    seed: whole("seed", 0) ?? D.seed,
  };
  const data = values.data ?? [];
  if (data.length === 0) throw new InputError("--data is missing; give files, run folders or folders of programs");
  return {
    ...{ values, settings, lora, data, json: values.json, planOnly: values.plan },
    out: values.plan ? (values.out ?? "") : required(values.out, "--out", "a folder for the trained model"),
    ...{ best: whole("best", 1), task: values.task, maxTokens: whole("max-tokens", 2) },
    style: choice("style", STYLES, "Paper"),
    heldOut: share("held-out") ?? HELD_OUT,
    checkpointSeconds: least0("checkpoint-seconds"),
    compute: COMPUTE[choice("compute", Object.keys(COMPUTE) as (keyof typeof COMPUTE)[], "Float32")],
  };
}

function loraOf(rank: number | undefined, alpha: number | undefined, targets: string | undefined) {
  if (rank === undefined) {
    const lone = alpha === undefined ? (targets === undefined ? undefined : "--targets") : "--alpha";
    if (lone !== undefined) throw new InputError(`${lone} is of a new adapter; give --rank too`);
    return undefined;
  }
  const named = targets?.split(",").map((name) => name.trim());
  const unknown = named?.find((name) => !(PROJECTIONS as readonly string[]).includes(name));
  if (unknown !== undefined) throw new InputError(`--targets has ${unknown}; known are ${PROJECTIONS.join(", ")}`);
  return { rank, alpha: alpha || rank, targets: PROJECTIONS.filter((name) => named?.includes(name) ?? true) };
}
