/** What generation holds beside the weights; an estimate by formula, its factors are measured (learner/LOG.md). */
import { elementCount } from "./graph/tensor.ts";
import type { ModelConfig } from "./model/config.ts";
import { joinedParameters } from "./model/fuse-graph.ts";
import type { Device } from "./runtime/device.ts";

export interface GenerationShape {
  /** solutions that are generated side by side */
  rows: number;
  /** distinct prompts among them */
  prompts: number;
  promptTokens: number;
  responseTokens: number;
}

/** What a manifest says of it. */
export interface GenerationLimits {
  maxPromptTokens: number;
  maxResponseTokens: number;
  /** solutions that are generated side by side, and how many of them share a prompt */
  generationBatchSize: number;
  samplesPerPrompt: number;
}

/** The largest batch of solutions. */
export function generationShape(o: GenerationLimits): GenerationShape {
  return {
    rows: o.generationBatchSize,
    prompts: Math.ceil(o.generationBatchSize / o.samplesPerPrompt),
    promptTokens: o.maxPromptTokens,
    responseTokens: o.maxResponseTokens,
  };
}

/**
 * The largest batch of programs that the frozen policy instruments at once: each has a prompt of its own, and its limits are others. As many
 * as have room where keys and values of the solutions were, one at least.
 */
export function instrumenterShape(
  limits: GenerationLimits,
  lengths: Pick<GenerationShape, "promptTokens" | "responseTokens">,
): GenerationShape {
  const room = cachedTokens(generationShape(limits)) / cachedTokens({ ...lengths, rows: 1, prompts: 1 });
  const rows = Math.min(limits.generationBatchSize, Math.max(1, Math.floor(room)));
  return { ...lengths, rows, prompts: rows };
}

/**
 * How often keys and values are held. Those of prompts as prefill gave them and as they are laid out: in this process's memory. On a
 * GPU the second is there too. Those of responses before and after a chunk of tokens, and on a CPU twice in the loop.
 */
const COPIES = { cpu: { prompts: 2, responses: 4 }, cuda: { prompts: 1, responses: 2 } } as const;
const HOST_PROMPT_COPIES = 2;
/** In a prefill on a GPU: those of the tokens before, and of all. */
const PREFILL_COPIES = 2;
/** Logits, probabilities, their running sum, a comparison. */
const LOGITS_COPIES = 4;
/** Attention scores of a layer in one prefill, numbers, and the least block of a long prompt: generate-prefill.ts. */
const PREFILL_SCORES = 2 ** 23;
const PREFILL_BLOCK = 256;
/** Before, within and after the softmax. */
const SCORES_COPIES = 3;

/** Keys and values of one token of one sequence, float32. */
export const cacheBytesPerToken = ({ layers, keyValueHeads, headSize }: ModelConfig): number =>
  8 * layers * keyValueHeads * headSize;

/** Tokens that keys and values are held of where the networks run, each as often as they are held. */
function cachedTokens(
  { rows, prompts, promptTokens, responseTokens }: GenerationShape,
  kind: Device["kind"] = "cpu",
): number {
  const copies = COPIES[kind];
  return copies.prompts * prompts * promptTokens + copies.responses * rows * responseTokens;
}

/** Bytes where the networks run: `cache`, `logits`, `activations`; and beside a GPU in this process's memory: `host`. */
export function generationMemory(
  config: ModelConfig,
  shape: GenerationShape,
  kind: Device["kind"],
): { cache: number; logits: number; activations: number; host: number } {
  const { rows, prompts, promptTokens } = shape;
  const { heads, hiddenSize, intermediateSize, vocabSize } = config;
  const token = cacheBytesPerToken(config);
  const columns = Math.floor(PREFILL_SCORES / (heads * promptTokens));
  const block = Math.min(promptTokens, Math.max(columns, PREFILL_BLOCK));
  const read = Math.min(prompts, Math.max(1, Math.floor(columns / promptTokens)));
  const numbers = block * read * (SCORES_COPIES * heads * promptTokens + 6 * hiddenSize + 3 * intermediateSize);
  const beside = kind === "cuda";
  return {
    cache: token * cachedTokens(shape, kind),
    logits: 4 * LOGITS_COPIES * rows * vocabSize,
    activations: 4 * numbers + (beside ? PREFILL_COPIES * token * read * promptTokens : 0),
    host: beside ? HOST_PROMPT_COPIES * token * prompts * promptTokens : 0,
  };
}

/** Matrices that generation has copies of, joined into fewer: float32. */
export function fusedBytes(config: ModelConfig): number {
  return joinedParameters(config).reduce((total, { shape }) => total + 4 * elementCount(shape), 0);
}
