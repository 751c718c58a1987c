/** The options of `longrun sft`. */
import type { Values } from "../../proto/command-line.ts";
import { PROJECTIONS } from "../engine/index.ts";
import { FINE_TUNE_DEFAULTS as D, type FineTuneSettings, LEARNING_RATES } from "../sft/fine-tune.ts";
import { InputError, MODEL_OPTIONS, number, required, whole } from "./command.ts";

/** The engine's word for each value of `learner.compute`. */
const COMPUTE = { Float32: "float32", TF32: "tf32", BFloat16: "bfloat16" } as const;
const least0 = number("a number of at least 0", (value) => value >= 0);
const share = number("a number of at least 0 and below 1", (value) => value >= 0 && value < 1);

export const SFT = {
  name: "longrun sft",
  description: "train a model on given answers before a run (supervised fine-tuning)",
  options: {
    ...MODEL_OPTIONS,
    data: {
      value: "PATH",
      help: "a file of JSON lines with messages, the last one the assistant's, or with prompt and completion; a run folder: its valid samples; a folder of Python programs that solve --task; may be repeated",
      multiple: true,
      required: "files, run folders or folders of programs",
    },
    out: {
      value: "DIR",
      help: "model folder, or with an adapter a PEFT folder; also has sft.jsonl, a line for each step",
    },
    best: {
      value: "N",
      help: "of a run folder: so many samples of each task, the best ones (default: all); two with the same program count once",
      as: whole(1),
    },
    task: { value: "TASK", help: "of a folder of programs: the task whose prompt is used" },
    style: {
      value: "STYLE",
      help: "of that prompt; use the run's prompts.style",
      choices: ["Paper", "Short"],
      default: "Paper",
    },
    "max-tokens": {
      value: "N",
      help: "longest prompt with its response; longer examples are left out and counted (default: the model's positions)",
      as: whole(2),
    },
    rank: { value: "N", help: "of a new adapter", as: whole(1) },
    alpha: { value: "N", help: "of a new adapter (default: --rank)", as: least0 },
    targets: { value: "LIST", help: `of a new adapter: of ${PROJECTIONS.join(",")} (default: all)` },
    epochs: { value: "N", help: "passes over the examples", default: String(D.epochs), as: whole(1) },
    "batch-size": { value: "N", help: "examples of a step", default: String(D.batchSize), as: whole(1) },
    "micro-batch-size": {
      value: "N",
      help: "most examples that are in memory at once",
      default: String(D.microBatchSize),
      as: whole(1),
    },
    "learning-rate": {
      value: "R",
      help: `the highest (default: ${LEARNING_RATES.full}; ${LEARNING_RATES.lora} of an adapter)`,
      as: number("a number above 0", (value) => value > 0),
    },
    schedule: {
      value: "SCHEDULE",
      help: "of the learning rate",
      choices: ["Constant", "Linear", "Cosine"],
      default: D.schedule,
    },
    "warmup-share": {
      value: "SHARE",
      help: "share of the steps during which the learning rate rises",
      default: String(D.warmupShare),
      as: share,
    },
    "gradient-clip": { value: "NORM", help: "0: none", default: String(D.gradientClip), as: least0 },
    "weight-decay": { value: "W", help: "of AdamW", default: String(D.weightDecay), as: least0 },
    seed: { value: "S", help: "of the order and of what is held out", default: String(D.seed), as: whole(0) },
    "held-out": {
      value: "SHARE",
      help: "share of the examples that are measured, not trained on; 0: none",
      default: "0.1",
      as: share,
    },
    "checkpoint-seconds": {
      value: "N",
      help: "least seconds between checkpoints; 0: after each step (default: so many that they take a tenth of the time)",
      as: least0,
    },
    compute: {
      value: "FORMAT",
      help: "TF32 and BFloat16 need a GPU",
      choices: ["Float32", "TF32", "BFloat16"],
      default: "Float32",
    },
    plan: { help: "print data, steps and memory, and train nothing" },
    json: { help: "print an object for each line" },
  },
  notes: `The loss is the cross-entropy of the responses' tokens. Every weight is trained, or with --rank or --adapter a LoRA adapter. The same
command goes on after Ctrl-C or a failure, from the newest checkpoint.`,
  examples: [
    "longrun sft --model quickstart --data corpus.jsonl --out models/warm",
    "longrun sft --model quickstart --data runs/short --best 8 --rank 16 --out adapters/best",
  ],
} as const;

/** @throws InputError naming the option */
export function sftOptions(values: Values<typeof SFT.options>) {
  const { rank, alpha, targets, plan: planOnly, ...rest } = values;
  const lora = loraOf(rank, alpha, targets);
  if (lora && values.adapter !== undefined)
    throw new InputError("--rank makes a new adapter and --adapter trains one further; give one of the two");
  const rate = LEARNING_RATES[lora || values.adapter !== undefined ? "lora" : "full"];
  const { epochs, batchSize, microBatchSize, learningRate = rate, schedule, warmupShare, ...more } = values;
  const { gradientClip, weightDecay, seed } = more;
  const settings: FineTuneSettings = {
    epochs,
    batchSize,
    microBatchSize,
    learningRate,
    schedule,
    warmupShare,
    gradientClip,
    weightDecay,
    seed,
  };
  return {
    ...rest,
    values,
    settings,
    lora,
    planOnly,
    out: planOnly ? (values.out ?? "") : required(values.out, "--out", "a folder for the trained model"),
    compute: COMPUTE[values.compute],
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
