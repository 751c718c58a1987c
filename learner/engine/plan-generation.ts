/** Estimates the memory of generation without the weights, by a formula with measured factors (learner/LOG.md). */
import { DTYPES, elementCount } from "./graph/tensor.ts";
import type { ModelConfig } from "./model/config.ts";
import { cachedHeadSize } from "./model/generate-graph.ts";
import { LEAST_SLOTS } from "./model/generate-slots.ts";
import { GPU_CAST_NUMBERS } from "./model/generate-weights.ts";
import type { MappedWeights } from "./model/mapped.ts";
import type { Device } from "./runtime/device.ts";

export interface GenerationShape {
  /** solutions that are generated side by side, each in a slot of the cache */
  rows: number;
  promptTokens: number;
  responseTokens: number;
}

/** The limits of generation in a manifest. */
export interface GenerationLimits {
  maxPromptTokens: number;
  maxResponseTokens: number;
  /** solutions that are generated side by side, and how many of them share a prompt */
  generationBatchSize: number;
  samplesPerPrompt: number;
}

/** The largest batch of solutions. */
export const generationShape = (limits: GenerationLimits): GenerationShape => ({
  rows: limits.generationBatchSize,
  promptTokens: limits.maxPromptTokens,
  responseTokens: limits.maxResponseTokens,
});

/**
 * Returns the largest batch of programs that the frozen policy instruments at once: as many as fit into the KV cache of the solutions, at
 * least one. Each program has a prompt of its own and other length limits than a solution.
 */
export function instrumenterShape(
  limits: GenerationLimits,
  lengths: Pick<GenerationShape, "promptTokens" | "responseTokens">,
): GenerationShape {
  const room = cachedTokens(generationShape(limits)) / cachedTokens({ ...lengths, rows: 1 });
  const rows = Math.min(limits.generationBatchSize, Math.max(1, Math.floor(room)));
  return { ...lengths, rows };
}

/** Number of arrays of the vocabulary's size: logits, probabilities, their running sum, a comparison. */
const LOGITS_COPIES = 4;
/** Attention scores of a layer while a prompt is read, numbers, and the least block of a long one: generate-slots.ts. */
const PREFILL_SCORES = 2 ** 23;
const PREFILL_BLOCK = 256;

/** Returns the number of tokens that the slots have room for. */
const cachedTokens = ({ rows, promptTokens, responseTokens }: GenerationShape): number =>
  rows * (promptTokens + responseTokens);

/** Returns the bytes on the device of the networks. */
export function generationMemory(config: ModelConfig, shape: GenerationShape, kind: Device["kind"]) {
  const { promptTokens, responseTokens } = shape;
  const rows = Math.max(LEAST_SLOTS, shape.rows);
  const { layers, heads, keyValueHeads, hiddenSize, intermediateSize, vocabSize } = config;
  const columns = Math.floor(PREFILL_SCORES / (heads * promptTokens));
  const block = Math.min(promptTokens, Math.max(columns, PREFILL_BLOCK));
  const numbers = block * (heads * (promptTokens + responseTokens) + 6 * hiddenSize + 3 * intermediateSize);
  const { bytes } = DTYPES[kind === "cuda" ? "bfloat16" : "float32"];
  const ofToken = 2 * layers * keyValueHeads * cachedHeadSize(config) * bytes; // keys and values
  return {
    cache: ofToken * cachedTokens({ ...shape, rows }),
    logits: 4 * LOGITS_COPIES * rows * vocabSize,
    activations: 4 * numbers,
  };
}

/** On a GPU a frozen matrix that is stored in half precision is cast for generation, this much of it at a time. */
export function castBytes(stored: MappedWeights["tensors"]): number {
  const cast = stored.filter(({ dtype }) => dtype !== "F32");
  return 4 * Math.min(GPU_CAST_NUMBERS, Math.max(0, ...cast.map(({ shape }) => elementCount(shape))));
}
