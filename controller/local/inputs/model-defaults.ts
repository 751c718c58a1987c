/** Settings for a model without a manifest, such that an iteration takes minutes on this machine's cores. Pure. */
import { count, duration } from "../terminal/duration.ts";
import type { ModelSize } from "./model-size.ts";

export interface Machine {
  cores: number;
  memoryBytes: number;
}

export interface Chosen {
  /** Parts of `spec`; what is not in it has the schema's default. */
  spec: {
    model: object;
    prompts: object;
    algorithm: { batchSize: number } & object;
    actors: { slots: number } & object;
    evaluation: object;
    stopping: object;
  };
  /** Estimate of one iteration. */
  iterationSeconds: number;
  reasons: Reason[];
}

interface Reason {
  /** Fields of `spec` that were chosen. */
  fields: string[];
  /** What was chosen and why, in a line. */
  text: string;
}

/** An iteration should not take longer, if the smallest batch allows it. */
const WANTED_SECONDS = 180;
/** Sizes of batches, from the paper's down to the smallest that is still a batch. */
const BATCH_SIZES = [128, 64, 32, 16, 8];
/**
 * Operations a second and core of a whole iteration, and operations a weight and token: generation, log-probs of policy and reference, and
 * an update. SmolLM2-135M on two cores (AVX-512, November 2026): 16 samples in 57 to 80 s.
 */
const CORE_OPERATIONS = 1e11;
const OPERATIONS = 14;
/** Above so many weights LoRA: training every weight takes 16 bytes each, and its updates are slow. */
const FULL_WEIGHTS = 50e6;
/** Memory of a slot: `executionMemoryBytes` and the sandbox (actor/README.md). */
const SLOT_BYTES = 4.5 * 2 ** 30;
/** Share of the memory for slots; the rest is the learner's. */
const SLOTS_SHARE = 1 / 3;
const LORA = { type: "LoRA", rank: 16 };

export function defaultsFor({ parameters, positions }: ModelSize, { cores, memoryBytes }: Machine): Chosen {
  const isNarrow = positions < 2048;
  const [maxPromptTokens, maxResponseTokens] = isNarrow
    ? [Math.floor(positions / 2), Math.floor(positions / 2)]
    : [1024, 512];
  // Half of the longest prompt and three quarters of the longest response, as samples of the bundled tasks have.
  const tokens = maxPromptTokens / 2 + (3 / 4) * maxResponseTokens;
  const secondsOf = (batch: number) => (OPERATIONS * parameters * tokens * batch) / (cores * CORE_OPERATIONS);
  const batchSize = BATCH_SIZES.find((size) => secondsOf(size) <= WANTED_SECONDS) ?? BATCH_SIZES.at(-1)!;
  const isLora = parameters > FULL_WEIGHTS;
  const mostSlots = Math.floor((memoryBytes * SLOTS_SHARE) / SLOT_BYTES);
  const slots = Math.max(1, Math.min(Math.floor(cores / 2), mostSlots, batchSize));
  const iterationSeconds = secondsOf(batchSize);
  const learningRate = isLora ? 1e-4 : 1e-5;
  const spec = {
    model: {
      maxPromptTokens,
      maxResponseTokens,
      generationBatchSize: Math.min(batchSize, 16),
      ...(isLora && { adaptation: { ...LORA } }),
    },
    prompts: { style: isNarrow ? "Short" : "Paper" },
    algorithm: {
      batchSize,
      miniBatchSize: batchSize / 4,
      microBatchSize: Math.min(batchSize / 4, 4),
      learningRate,
      baseline: "BatchMean",
      validScoreWeight: 0.5,
    },
    actors: { min: 1, max: 1, slots },
    evaluation: { samples: batchSize },
    stopping: { iterations: 20 },
  };
  const reasons: [fields: string, text: string][] = [
    [
      "algorithm.batchSize",
      `batchSize ${batchSize}: with ${millions(parameters)} weights on ${count(cores, "core")} an iteration takes about ` +
        `${duration(iterationSeconds)}${batchSize === BATCH_SIZES.at(-1) && iterationSeconds > WANTED_SECONDS ? ", more than wanted: a GPU or a smaller model is faster" : ""}`,
    ],
    [
      isLora ? "model.adaptation algorithm.learningRate" : "model.adaptation",
      isLora
        ? `model.adaptation LoRA of rank 16, learningRate ${learningRate}: to train every weight takes ${bytes(16 * parameters)} and longer`
        : `every weight is trained: ${bytes(16 * parameters)}`,
    ],
    ["algorithm.baseline", "algorithm.baseline BatchMean: a critic takes as much memory and time as the model"],
    [
      "prompts.style model.maxPromptTokens model.maxResponseTokens",
      `prompts.style ${spec.prompts.style}, at most ${maxPromptTokens} tokens, responses ${maxResponseTokens}: the model has ${positions} positions`,
    ],
    [
      "evaluation.samples",
      `evaluation.samples ${batchSize} before and after: as much work as an iteration's generation`,
    ],
    [
      "actors.slots",
      `actors.slots ${slots}: ${slots === mostSlots ? "what a third of the memory allows" : "half of the cores"}`,
    ],
    ["stopping.iterations", "stopping.iterations 20"],
  ];
  return { spec, iterationSeconds, reasons: reasons.map(([fields, text]) => ({ fields: fields.split(" "), text })) };
}

const millions = (n: number) =>
  n >= 1e9 ? `${(n / 1e9).toFixed(1)} billion` : `${Math.max(1, Math.round(n / 1e6))} million`;
const bytes = (n: number) => (n >= 1e9 ? `${(n / 1e9).toFixed(1)} GB` : `${Math.round(n / 1e6)} MB`);
