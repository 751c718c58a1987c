/** What generation holds beside the weights; an estimate by formula, its factors are measured (learner/LOG.md). */
import { elementCount } from "../graph/tensor.ts";
import type { ModelConfig } from "../model/config.ts";
import { fusedParameters, transformersName } from "../model/fuse.ts";

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
/** Attention scores of one prefill, numbers: PREFILL_SCORES of generate.ts; before, within and after the softmax. */
const PREFILL_SCORES = 2 ** 23;
const PREFILL_COPIES = 3;

/** Keys and values of one token of one sequence, float32. */
export const cacheBytesPerToken = ({ layers, keyValueHeads, headSize }: ModelConfig): number =>
  8 * layers * keyValueHeads * headSize;

export function generationMemory(
  config: ModelConfig,
  { rows, prompts, promptTokens, responseTokens }: GenerationShape,
): { cache: number; logits: number; activations: number } {
  const { heads, hiddenSize, intermediateSize, vocabSize } = config;
  const token = cacheBytesPerToken(config);
  const scores = heads * promptTokens ** 2;
  const together = Math.min(prompts, Math.max(1, Math.floor(PREFILL_SCORES / scores)));
  return {
    cache: token * (PROMPT_COPIES * prompts * promptTokens + RESPONSE_COPIES * rows * responseTokens),
    logits: 4 * LOGITS_COPIES * rows * vocabSize,
    activations: 4 * together * (PREFILL_COPIES * scores + promptTokens * (6 * hiddenSize + 3 * intermediateSize)),
  };
}

/** Matrices that generation has copies of, joined into fewer: float32. */
export function fusedBytes(config: ModelConfig): number {
  const copied = fusedParameters(config).filter(({ name }) => transformersName(name) === undefined);
  return copied.reduce((total, { shape }) => total + 4 * elementCount(shape), 0);
}
