/** Which sequences go through a graph together, and what a token counts for in a loss. */

import type { Sequence, Step } from "./engine.ts";
import { EngineError } from "./errors.ts";

/** Tokens per thread of a CPU. 64 sequences on one thread: 2.2 s at 512, 3.2 s at 256, 2.4 s at 1024. */
export const MICRO_BATCH_TOKENS = 512;

export interface MicroBatchLimits {
  /** most sequences */
  sequences: number;
  /** most tokens, padding included; a longer sequence goes alone */
  tokens: number;
}

const lengthOf = ({ prompt, response }: Sequence) => prompt.length + response.length;

/**
 * Indices of `batch`, longest sequences first, in groups of similar length, so that little is padded and memory is at its
 * peak in the first group. Sequences without response tokens are left out.
 */
export function microBatches(batch: readonly Sequence[], limits: MicroBatchLimits): number[][] {
  const order = batch
    .map((_, i) => i)
    .filter((i) => batch[i].response.length > 0)
    .sort((a, b) => lengthOf(batch[b]) - lengthOf(batch[a]) || a - b);
  const groups: number[][] = [];
  for (const i of order) {
    const group = groups.at(-1);
    // the first of a group is its longest
    const fits =
      group && group.length < limits.sequences && (group.length + 1) * lengthOf(batch[group[0]]) <= limits.tokens;
    if (fits) group.push(i);
    else groups.push([i]);
  }
  return groups;
}

/**
 * What each sequence's tokens are multiplied by so that the micro-batches' losses add up to the batch's:
 *
 * | aggregation | |
 * | --- | --- |
 * | SeqMeanTokenMean | mean over sequences of the mean over tokens |
 * | TokenMean | mean over all tokens |
 * | SeqMeanTokenSumNorm | mean over sequences of the sum over tokens, divided by maxResponseTokens (Dr. GRPO) |
 */
export function tokenScale(
  batch: readonly Sequence[],
  { aggregation, normalizer, maxResponseTokens }: Pick<Step, "aggregation" | "normalizer" | "maxResponseTokens">,
): number[] {
  const { sequences, tokens } = normalizer ?? {
    sequences: batch.length,
    tokens: batch.reduce((total, { response }) => total + response.length, 0),
  };
  switch (aggregation) {
    case "TokenMean":
      return batch.map(() => 1 / tokens);
    case "SeqMeanTokenMean":
      return batch.map(({ response }) => 1 / (sequences * response.length));
    case "SeqMeanTokenSumNorm":
      if (maxResponseTokens === undefined)
        throw new EngineError("step", "aggregation SeqMeanTokenSumNorm needs maxResponseTokens");
      return batch.map(() => 1 / (sequences * maxResponseTokens));
  }
}
