/** Causal grouped-query attention with its gradient. */
import { custom } from "./gradients.ts";
import { type Dim, type Graph, innermost, type Value } from "./graph.ts";
import { add, concat, equal, matmul, mul, or, reshape, softmax, sub, sum, transpose, where } from "./primitives.ts";
import { product } from "./shapes.ts";

export interface AttentionShape {
  batch: Dim;
  /** the sequence is this many blocks of `block` positions; keys after a block of queries are never looked at */
  blocks: number;
  block: Dim;
  /** query heads, a multiple of keyValueHeads */
  heads: number;
  keyValueHeads: number;
  headSize: number;
}

/** What is added to the score of a key that a query must not see: its probability is 0. */
export const MASKED = -1e9;

/** [block, (i + 1) * block] for each block of queries: nothing is hidden but the upper triangle of the last square. */
function causalMasks(triangle: Value, blocks: number): Value[] {
  const masks = [triangle];
  const nothing = mul(triangle, 0);
  for (let i = 1; i < blocks; i++)
    masks.push(named(concat([nothing, masks[i - 1]], 1), 1, product([i + 1, triangle.shape[0]])));
  return masks;
}

/**
 * Masks of rows that are a prefix (branch 0) and continuations of it (branches 1, 2, ...), one after the other: a query
 * sees what is before it in the prefix and in its own branch. For each block of queries float32 [batch, 1, 1, block, (i + 1) * block].
 *
 * @param triangle float32 [block, block], MASKED above the diagonal, else 0
 * @param branches int32 [batch, blocks * block]
 */
export function branchMasks(triangle: Value, branches: Value, blocks: number): Value[] {
  const [batch] = branches.shape;
  const [block] = triangle.shape;
  const cut = pieces(innermost([branches]), branches, 1, blocks, block);
  return causalMasks(triangle, blocks).map((causal, i) => {
    const length = product([i + 1, block]);
    const keys = reshape(named(concat(cut.slice(0, i + 1), 1), 1, length), [batch, 1, 1, 1, length]);
    const seen = or(equal(keys, 0), equal(keys, reshape(cut[i], [batch, 1, 1, block, 1])));
    return where(seen, causal, MASKED);
  });
}

/** The same value with the size of an axis said as a product, where concat says it as a sum. */
function named(x: Value, axis: number, dim: Dim): Value {
  return { ...x, shape: x.shape.map((old, i) => (i === axis ? dim : old)) };
}

/**
 * softmax(q k^T / sqrt(headSize) + mask) v, with masks of `branchMasks`.
 * q [batch*time, heads*headSize]; k, v [batch*time, keyValueHeads*headSize], time = blocks * block.
 *
 * Queries go block by block, each against the keys up to its own block only: (blocks + 1) / 2 blocks of the work of a
 * full product. The query heads that share a key head are rows of one product, so keys and values are never repeated.
 * Backward keeps only the probabilities P; the row sums of dP * P are those of dO * O, which are smaller.
 */
export function attention(q: Value, k: Value, v: Value, masks: readonly Value[], shape: AttentionShape): Value {
  const { batch, blocks, block, heads, keyValueHeads, headSize } = shape;
  const groups = heads / keyValueHeads;
  const time = product([blocks, block]);
  const rows = product([batch, time]);
  const queryRows = product([groups, block]);
  const alpha = 1 / Math.sqrt(headSize);
  const graph = innermost([q, k, v]);

  /** [batch*time, heads*headSize] -> per block [batch, keyValueHeads, groups*block, headSize] */
  const queryBlocks = (x: Value): Value[] => {
    const folded = transpose(reshape(x, [batch, blocks, block, keyValueHeads, groups, headSize]), [1, 0, 3, 4, 2, 5]);
    return pieces(graph, folded, 0, blocks, 1).map((piece) =>
      reshape(piece, [batch, keyValueHeads, queryRows, headSize]),
    );
  };
  const joinQueryBlocks = (parts: Value[]): Value => {
    const stacked = concat(
      parts.map((part) => reshape(part, [1, batch, keyValueHeads, groups, block, headSize])),
      0,
    );
    return reshape(transpose(stacked, [1, 0, 4, 2, 3, 5]), [rows, heads * headSize]);
  };
  const keyHeads = (x: Value): Value => transpose(reshape(x, [batch, time, keyValueHeads, headSize]), [0, 2, 1, 3]);
  const joinKeyBlocks = (parts: Value[]): Value =>
    reshape(transpose(named(concat(parts, 2), 2, time), [0, 2, 1, 3]), [rows, keyValueHeads * headSize]);
  const until = (x: Value, i: number): Value => (i === blocks - 1 ? x : prefix(graph, x, 2, product([i + 1, block])));

  let saved: { keys: Value[]; values: Value[]; queries: Value[]; probabilities: Value[]; contexts: Value[] };
  return custom(
    "attention",
    [q, k, v],
    ([qIn, kIn, vIn]) => {
      const [key, value] = [keyHeads(kIn), keyHeads(vIn)];
      const queries = queryBlocks(qIn);
      const keys = queries.map((_, i) => until(key, i));
      const values = queries.map((_, i) => until(value, i));
      const probabilities = queries.map((query, i) => {
        const scores = matmul(query, keys[i], { transB: true, alpha });
        const length = product([i + 1, block]);
        const masked = add(reshape(scores, [batch, keyValueHeads, groups, block, length]), masks[i]);
        return reshape(softmax(masked), [batch, keyValueHeads, queryRows, length]);
      });
      const contexts = probabilities.map((p, i) => matmul(p, values[i]));
      saved = { keys, values, queries, probabilities, contexts };
      return [joinQueryBlocks(contexts)];
    },
    ([d]) => {
      const { keys, values, queries, probabilities, contexts } = saved;
      const dContexts = queryBlocks(d!);
      const dQueries: Value[] = [];
      const dKeys: Value[] = []; // by block of keys
      const dValues: Value[] = [];
      const collect = (totals: Value[], x: Value, i: number) => {
        for (const [j, piece] of pieces(graph, x, 2, i + 1, block).entries()) {
          totals[j] = totals[j] ? add(totals[j], piece) : piece;
        }
      };
      for (const [i, p] of probabilities.entries()) {
        const dContext = dContexts[i];
        const delta = sum(mul(dContext, contexts[i]), [3], true);
        const dScores = mul(p, sub(matmul(dContext, values[i], { transB: true }), delta));
        dQueries.push(matmul(dScores, keys[i], { alpha }));
        collect(dKeys, matmul(dScores, queries[i], { transA: true, alpha }), i);
        collect(dValues, matmul(p, dContext, { transA: true }), i);
      }
      return [joinQueryBlocks(dQueries), joinKeyBlocks(dKeys), joinKeyBlocks(dValues)];
    },
  )[0];
}

/** `count` equal pieces of size `size` along an axis. */
function pieces(graph: Graph, x: Value, axis: number, count: number, size: Dim): Value[] {
  if (count === 1) return [x];
  const shape = x.shape.map((dim, i) => (i === axis ? size : dim));
  return graph.op("Split", [x], { axis, num_outputs: count }, new Array(count).fill({ dtype: x.dtype, shape }));
}

/** The first `length` entries of an axis. */
function prefix(graph: Graph, x: Value, axis: number, length: Dim): Value {
  const [zero, along] = [graph.constant([0], "int64"), graph.constant([axis], "int64")];
  const shape = x.shape.map((dim, i) => (i === axis ? length : dim));
  return graph.op("Slice", [x, zero, graph.dim(length), along], {}, [{ dtype: x.dtype, shape }])[0];
}
