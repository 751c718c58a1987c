/** Causal grouped-query attention with its gradient. */
import { custom } from "./gradients.ts";
import type { Dim, Value } from "./graph.ts";
import { add, matmul, mul, reshape, softmax, sub, sum, transpose } from "./primitives.ts";
import { product } from "./shapes.ts";

export interface AttentionShape {
  batch: Dim;
  time: Dim;
  /** query heads, a multiple of keyValueHeads */
  heads: number;
  keyValueHeads: number;
  headSize: number;
}

/**
 * softmax(q k^T / sqrt(headSize) + mask) v.
 * q [batch*time, heads*headSize]; k, v [batch*time, keyValueHeads*headSize]; mask [time, time], added to the scores.
 * The query heads that share a key head are rows of one product, so keys and values are never repeated.
 * Backward keeps only the probabilities; the row sums of dP * P are those of dO * O, which are smaller.
 */
export function attention(q: Value, k: Value, v: Value, mask: Value, shape: AttentionShape): Value {
  const { batch, time, heads, keyValueHeads, headSize } = shape;
  const groups = heads / keyValueHeads;
  const rows = product([batch, time]);
  const queryRows = product([groups, time]);
  const alpha = 1 / Math.sqrt(headSize);
  const fold = (x: Value) =>
    reshape(transpose(reshape(x, [batch, time, keyValueHeads, groups, headSize]), [0, 2, 3, 1, 4]), [
      batch,
      keyValueHeads,
      queryRows,
      headSize,
    ]);
  const unfold = (x: Value) =>
    reshape(transpose(reshape(x, [batch, keyValueHeads, groups, time, headSize]), [0, 3, 1, 2, 4]), [
      rows,
      heads * headSize,
    ]);
  const foldKeys = (x: Value) => transpose(reshape(x, [batch, time, keyValueHeads, headSize]), [0, 2, 1, 3]);
  const unfoldKeys = (x: Value) => reshape(transpose(x, [0, 2, 1, 3]), [rows, keyValueHeads * headSize]);
  let saved: { query: Value; key: Value; value: Value; probabilities: Value; context: Value };
  return custom(
    [q, k, v],
    ([qIn, kIn, vIn]) => {
      const query = fold(qIn);
      const key = foldKeys(kIn);
      const value = foldKeys(vIn);
      const scores = matmul(query, key, { transB: true, alpha });
      const masked = add(reshape(scores, [batch, keyValueHeads, groups, time, time]), mask);
      const probabilities = reshape(softmax(masked), [batch, keyValueHeads, queryRows, time]);
      const context = matmul(probabilities, value);
      saved = { query, key, value, probabilities, context };
      return [unfold(context)];
    },
    ([d]) => {
      const { query, key, value, probabilities, context } = saved;
      const dContext = fold(d!);
      const dValue = matmul(probabilities, dContext, { transA: true });
      const delta = sum(mul(dContext, context), [3], true);
      const dScores = mul(probabilities, sub(matmul(dContext, value, { transB: true }), delta));
      const dQuery = matmul(dScores, key, { alpha });
      const dKey = matmul(dScores, query, { transA: true, alpha });
      return [unfold(dQuery), unfoldKeys(dKey), unfoldKeys(dValue)];
    },
  )[0];
}
