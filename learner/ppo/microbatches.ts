/** Which sequences go through a graph together, and what a token counts for in a loss. */
import type { Aggregation, Sequence } from "./engine.ts";

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
 * SeqMeanTokenMean is the mean over sequences of the mean over tokens, TokenMean the mean over all tokens.
 */
export function tokenScale(
  batch: readonly Sequence[],
  aggregation: Aggregation,
  normalizer = defaultNormalizer(batch),
): number[] {
  return batch.map(({ response }) =>
    aggregation === "TokenMean" ? 1 / normalizer.tokens : 1 / (normalizer.sequences * response.length),
  );
}

function defaultNormalizer(batch: readonly Sequence[]): { sequences: number; tokens: number } {
  return { sequences: batch.length, tokens: batch.reduce((total, { response }) => total + response.length, 0) };
}
