/** What generation holds beside the weights; an estimate by formula, its factors are measured (learner/LOG.md). */
import { elementCount } from "../graph/tensor.ts";
import type { ModelConfig } from "../model/config.ts";
import { joinedParameters } from "../model/fuse-graph.ts";

export interface GenerationShape {
  /** solutions that are generated side by side */
  rows: number;
  /** distinct prompts among them */
  prompts: number;
  promptTokens: number;
  responseTokens: number;
}

/** Of keys and values: of prompts as prefill gave them and as they are laid out; of what is generated before and after a
 * chunk of tokens, and twice in the loop. */
const PROMPT_COPIES = 2;
const RESPONSE_COPIES = 4;
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

export function generationMemory(
  config: ModelConfig,
  { rows, prompts, promptTokens, responseTokens }: GenerationShape,
): { cache: number; logits: number; activations: number } {
  const { heads, hiddenSize, intermediateSize, vocabSize } = config;
  const token = cacheBytesPerToken(config);
  const columns = Math.floor(PREFILL_SCORES / (heads * promptTokens));
  const block = Math.min(promptTokens, Math.max(columns, PREFILL_BLOCK));
  const together = block * Math.min(prompts, Math.max(1, Math.floor(columns / promptTokens)));
  return {
    cache: token * (PROMPT_COPIES * prompts * promptTokens + RESPONSE_COPIES * rows * responseTokens),
    logits: 4 * LOGITS_COPIES * rows * vocabSize,
    activations: 4 * together * (SCORES_COPIES * heads * promptTokens + 6 * hiddenSize + 3 * intermediateSize),
  };
}

/** Matrices that generation has copies of, joined into fewer: float32. */
export function fusedBytes(config: ModelConfig): number {
  return joinedParameters(config).reduce((total, { shape }) => total + 4 * elementCount(shape), 0);
}
