/** Causal grouped-query attention with its gradient. */

import { custom } from "./emit.ts";
import { fusedAttention, fusesAttention } from "./fused.ts";
import type { Dim, Graph, Value } from "./graph.ts";
import { add, cast, concat, equal, mul, or, reshape, softmax, sub, sum, transpose, where } from "./primitives.ts";
import { half, matmul, narrows } from "./products.ts";
import { after } from "./recomputation.ts";
import { product } from "./shapes.ts";

export interface AttentionShape {
  batch: Dim;
  /** the sequence is this many blocks of `block` positions; no query reads keys after its block */
  blocks: number;
  block: Dim;
  /** query heads, a multiple of keyValueHeads */
  heads: number;
  keyValueHeads: number;
  headSize: number;
  /** the backward pass computes probabilities again, a block at a time; default false */
  recompute?: boolean;
}

/** Added to the score of a key that a query must not see, so that the key's probability is 0. */
export const MASKED = -1e9;

/** Returns the mask that is added to the scores of a block of queries: [batch, 1, 1, block, (i + 1) * block] in the dtype of the scores. */
export type Masks = (block: number, scores: Value) => Value;

/** The inputs of a graph that say which keys a query sees: the masks' of `branchMasks`, or spans of keys for one kernel. */
export type Sight =
  | { readonly spans: Value }
  | {
      /** [block, block], MASKED above the diagonal */
      readonly triangle: Value;
      /** number of the token's response in its row, from 1; 0: the prompt, or padding */
      readonly branches: Value;
    };

/** Makes the inputs: `spans` int32 [4, batch * blocks * block] (`spansOf`), or `triangle` and `branches`. */
export function sightInputs(
  g: Graph,
  { batch, blocks, block, headSize }: Omit<AttentionShape, "heads" | "keyValueHeads">,
): Sight {
  if (fusesAttention({ graph: g }, headSize))
    return { spans: g.input("spans", "int32", [SPANS, product([batch, blocks, block])]) };
  return {
    triangle: g.input("triangle", "float32", [block, block]),
    branches: g.input("branches", "int32", [batch, product([blocks, block])]),
  };
}

/** Returns how attention over such inputs masks; call it once for all layers. */
export const masksOf = (sight: Sight, { blocks, recompute = false }: AttentionShape): Masks | { spans: Value } =>
  "spans" in sight ? sight : branchMasks(sight.triangle, sight.branches, blocks, { again: recompute });

/** Numbers of a token in `spans`. */
const SPANS = 4;

/**
 * Spans of keys, int32 [4, tokens], for rows of tokens one after the other. Key k is seen by the queries q with k <= q < ends[k]. Query q sees
 * keys begins[q] <= k < prompts[q] and starts[q] <= k <= q: the prompt, and its own branch.
 *
 * @param branches number of the token's response in its row, from 1; 0: the prompt, or padding @param rows first token of each row, and its
 *   number of tokens; the tokens of no row are padding
 */
export function spansOf(
  branches: Int32Array,
  rows: readonly { readonly begin: number; readonly tokens: number }[],
): Int32Array {
  const tokens = branches.length;
  const spans = new Int32Array(SPANS * tokens);
  const [ends, begins, prompts, starts] = [0, 1, 2, 3].map((i) => spans.subarray(i * tokens, (i + 1) * tokens)) as [
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
  ];
  // padding sees itself, and nothing else sees it
  for (let at = 0; at < tokens; at++) {
    ends[at] = at + 1;
    for (const own of [begins, prompts, starts]) own[at] = at;
  }
  for (const { begin, tokens: length } of rows) {
    let start = begin;
    let prompt = begin;
    for (let at = begin; at < begin + length; at++) {
      const branch = branches[at]!;
      if (branch === 0) prompt = at + 1;
      else if (branch !== branches[at - 1]) start = at;
      begins[at] = begin;
      prompts[at] = branch === 0 ? begin : prompt;
      starts[at] = branch === 0 ? begin : start;
      if (branch === 0) ends[at] = begin + length;
    }
    // a branch's keys end where its last token does
    for (let at = begin + length - 2; at >= begin; at--)
      if (branches[at] !== 0 && branches[at] === branches[at + 1]) ends[at] = ends[at + 1]!;
  }
  return spans;
}

/**
 * Masks of rows that are a prefix (branch 0) and continuations of it (branches 1, 2, ...), one after the other: a query
 * sees the earlier tokens of the prefix and of its own branch.
 *
 * @param triangle float32 [block, block], MASKED above the diagonal, else 0
 * @param branches int32 [batch, blocks * block]
 * @param again each use makes its own mask; otherwise one mask stays until its last use
 */
export function branchMasks(triangle: Value, branches: Value, blocks: number, { again = false } = {}): Masks {
  const dtype = narrows(triangle) ? "bfloat16" : "float32";
  const [batch] = branches.shape;
  const [block] = triangle.shape;
  const nothing = mul(triangle, 0);
  const cut = pieces(branches.graph, branches, 1, blocks, block);
  const make = (i: number, scores?: Value): Value => {
    const length = product([i + 1, block]);
    const then = (x: Value) => (scores ? after(x, scores) : x);
    const keys = reshape(then(named(concat(cut.slice(0, i + 1), 1), 1, length)), [batch, 1, 1, 1, length]);
    const seen = or(equal(keys, 0), equal(keys, reshape(cut[i], [batch, 1, 1, block, 1])));
    const causal = named(concat([...new Array<Value>(i).fill(nothing), then(triangle)], 1), 1, length);
    return cast(where(seen, causal, MASKED), dtype);
  };
  if (again) return make;
  const masks = cut.map((_, i) => make(i));
  return (i) => masks[i];
}

/** Returns the same value with the size of an axis named as a product, where concat names it as a sum. */
function named(x: Value, axis: number, dim: Dim): Value {
  return { ...x, shape: x.shape.map((old, i) => (i === axis ? dim : old)) };
}

/**
 * softmax(q k^T / sqrt(headSize) + mask) v, with masks of `branchMasks`; in bfloat16 if the graph's products are bfloat16, except sums over
 * blocks.
 * q [batch*time, heads*headSize]; k, v [batch*time, keyValueHeads*headSize], time = blocks * block.
 *
 * Queries are computed block by block, each with the keys up to its own block only: (blocks + 1) / 2 blocks of the work of a
 * full product. The query heads that share a key head are rows of one product, so keys and values are never repeated.
 * Backward keeps only the probabilities P, or with `recompute` computes them again block by block, so that there are never more
 * than one block's; the row sums of dP * P equal the row sums of dO * O, which are smaller.
 */
export function attention(q: Value, k: Value, v: Value, masks: Masks | { spans: Value }, shape: AttentionShape): Value {
  if ("spans" in masks) return fusedAttention(q, k, v, masks.spans, shape);
  const { batch, blocks, block, heads, keyValueHeads, headSize, recompute = false } = shape;
  const groups = heads / keyValueHeads;
  const time = product([blocks, block]);
  const rows = product([batch, time]);
  const queryRows = product([groups, block]);
  const alpha = 1 / Math.sqrt(headSize);
  const graph = q.graph;
  const narrow = (x: Value) => (narrows(q) ? half(x) : x);
  if (recompute) graph.model.recomputes = true;
  const length = (i: number) => product([i + 1, block]);

  /** [batch*time, heads*headSize] -> per block [batch, keyValueHeads, groups*block, headSize] */
  const queryBlocks = (x: Value): Value[] => {
    const folded = transpose(reshape(x, [batch, blocks, block, keyValueHeads, groups, headSize]), [1, 0, 3, 4, 2, 5]);
    const shape = [batch, keyValueHeads, queryRows, headSize];
    return pieces(graph, folded, 0, blocks, 1).map((piece) => reshape(piece, shape));
  };
  const joinQueryBlocks = (parts: Value[]): Value => {
    const each = parts.map((part) => reshape(part, [1, batch, keyValueHeads, groups, block, headSize]));
    return reshape(transpose(concat(each, 0), [1, 0, 4, 2, 3, 5]), [rows, heads * headSize]);
  };
  const keyHeads = (x: Value): Value => transpose(reshape(x, [batch, time, keyValueHeads, headSize]), [0, 2, 1, 3]);
  const joinKeyHeads = (x: Value): Value => reshape(transpose(x, [0, 2, 1, 3]), [rows, keyValueHeads * headSize]);
  const until = (x: Value, i: number): Value => (i === blocks - 1 ? x : prefix(graph, x, 2, length(i)));
  const probabilitiesOf = (query: Value, key: Value, i: number): Value => {
    const scores = matmul(query, until(key, i), { transB: true, alpha });
    const masked = add(reshape(scores, [batch, keyValueHeads, groups, block, length(i)]), masks(i, scores));
    return reshape(softmax(masked), [batch, keyValueHeads, queryRows, length(i)]);
  };

  let saved: { key: Value; value: Value; queries: Value[]; probabilities: Value[]; contexts: Value[] };
  return custom(
    "attention",
    [narrow(q), k, narrow(v)],
    ([qIn, kIn, vIn]) => {
      const [key, value] = [keyHeads(narrow(kIn)), keyHeads(vIn)];
      const queries = queryBlocks(qIn);
      const probabilities = queries.map((query, i) => probabilitiesOf(query, key, i));
      const contexts = probabilities.map((p, i) => matmul(p, until(value, i)));
      saved = { key, value, queries, probabilities, contexts };
      return [joinQueryBlocks(contexts)];
    },
    ([d]) => {
      const { key, value, queries, contexts } = saved;
      const dContexts = queryBlocks(d!);
      const dQueries: Value[] = [];
      let dKey: Value | undefined; // sum of the blocks so far, as long as the longest
      let dValue: Value | undefined;
      for (let i = blocks - 1; i >= 0; i--) {
        const before = dKey && dValue ? [dQueries[i + 1], dKey, dValue] : [d!];
        const query = recompute ? after(queries[i], ...before) : queries[i];
        const p = recompute ? probabilitiesOf(query, key, i) : saved.probabilities[i];
        // in float32: an error of delta would spread over a whole row
        const delta = sum(cast(mul(dContexts[i], contexts[i]), "float32"), [3], true);
        const dProbabilities = matmul(dContexts[i], until(value, i), { transB: true });
        const dScores = mul(p, cast(sub(cast(dProbabilities, "float32"), delta), p.dtype));
        dQueries[i] = matmul(dScores, until(key, i), { alpha });
        const dKeys = matmul(dScores, queries[i], { transA: true, alpha });
        const dValues = matmul(p, dContexts[i], { transA: true });
        dKey = longer(graph, dKey, cast(dKeys, "float32"));
        dValue = longer(graph, dValue, cast(dValues, "float32"));
      }
      return [joinQueryBlocks(dQueries), joinKeyHeads(cast(dKey!, k.dtype)), joinKeyHeads(cast(dValue!, value.dtype))];
    },
  )[0];
}

/** Adds `part` to the beginning of `total` along axis 2. */
function longer(graph: Graph, total: Value | undefined, part: Value): Value {
  if (total === undefined) return part;
  const rest = sub(graph.dim(total.shape[2]), graph.dim(part.shape[2]));
  const pads = concat([graph.constant([0], "int64"), rest], 0);
  const inputs = [part, pads, graph.constant(0, part.dtype), graph.constant([2], "int64")];
  return add(total, graph.op("Pad", inputs, {}, [total])[0]);
}

/** `count` equal pieces of size `size` along an axis. */
function pieces(graph: Graph, x: Value, axis: number, count: number, size: Dim): Value[] {
  if (count === 1) return [x];
  const shape = x.shape.map((dim, i) => (i === axis ? size : dim));
  return graph.op("Split", [x], { axis, num_outputs: count }, new Array(count).fill({ dtype: x.dtype, shape }));
}

function prefix(graph: Graph, x: Value, axis: number, length: Dim): Value {
  const [zero, along] = [graph.constant([0], "int64"), graph.constant([axis], "int64")];
  const shape = x.shape.map((dim, i) => (i === axis ? length : dim));
  return graph.op("Slice", [x, zero, graph.dim(length), along], {}, [{ dtype: x.dtype, shape }])[0];
}
