import type { Graph, Shape, Value } from "../graph/graph.ts";
import type { DType } from "../graph/tensor.ts";

/**
 * Choosing a token from logits already divided by the temperature, float32 [rows, vocabulary]. Randomness comes in as
 * one uniform number in [0, 1) per row: the token is where the cumulative probability first exceeds it (inverse CDF).
 * The log-prob returned is that of the token under the full distribution, also when only the nucleus is sampled from.
 */
export interface Sampled {
  readonly token: Value; // int64 [rows]
  readonly logProb: Value; // float32 [rows]
}

/** Sums of float32 probabilities are a little off 1; a target this far below the sum always has a token above it. */
const BELOW_ONE = 1 - 2 ** -23;

function op(
  graph: Graph,
  type: string,
  inputs: Value[],
  shape: Shape,
  attributes = {},
  dtype: DType = inputs[0].dtype,
) {
  return graph.op(type, inputs, attributes, [{ dtype, shape }])[0];
}

/** The most probable token; of equals the first. */
export function sampleGreedy(graph: Graph, logits: Value): Sampled {
  const [rows] = logits.shape;
  const token = op(graph, "ArgMax", [logits], [rows], { axis: 1, keepdims: 0 }, "int64");
  const probabilities = op(graph, "Softmax", [logits], logits.shape, { axis: -1 });
  return { token, logProb: logProbOf(graph, probabilities, token) };
}

/**
 * A token of the whole vocabulary. The cumulative sum runs in two levels, over blocks and then within the chosen block,
 * because CumSum over the vocabulary costs as much as the output layer.
 */
export function sampleFromAll(graph: Graph, logits: Value, uniform: Value): Sampled {
  const [rows, vocabulary] = logits.shape as [Shape[number], number];
  const block = blockSize(vocabulary);
  const blocks = vocabulary / block;
  const probabilities = op(graph, "Softmax", [logits], logits.shape, { axis: -1 });
  const blocked = op(graph, "Reshape", [probabilities, graph.shapeOf([rows, blocks, block])], [rows, blocks, block]);
  const sums = op(graph, "ReduceSum", [blocked, graph.constant([2], "int64")], [rows, blocks], { keepdims: 0 });
  const first = firstAbove(
    graph,
    sums,
    op(graph, "Unsqueeze", [uniform, graph.constant([1], "int64")], [rows, 1]),
    true,
  );
  const index = op(graph, "Unsqueeze", [first.index, graph.constant([1], "int64")], [rows, 1]);
  const chosen = graph.op("GatherND", [blocked, index], { batch_dims: 1 }, [
    { dtype: "float32", shape: [rows, block] },
  ])[0];
  const second = firstAbove(graph, chosen, first.rest, false);
  const base = op(graph, "Mul", [first.index, graph.constant(block, "int64")], [rows]);
  const token = op(graph, "Add", [base, second.index], [rows]);
  return { token, logProb: logProbOf(graph, probabilities, token) };
}

/**
 * A token of the nucleus: the smallest set of most probable tokens whose probability reaches `topP`, renormalised.
 * The token that crosses `topP` belongs to it, so it is never empty.
 */
export function sampleFromNucleus(graph: Graph, logits: Value, uniform: Value, topP: Value): Sampled {
  const [rows, vocabulary] = logits.shape as [Shape[number], number];
  const shape = [rows, vocabulary];
  const probabilities = op(graph, "Softmax", [logits], shape, { axis: -1 });
  const [sorted, order] = graph.op("TopK", [probabilities, graph.constant([vocabulary], "int64")], { axis: 1 }, [
    { dtype: "float32", shape },
    { dtype: "int64", shape },
  ]);
  const before = cumulativeSum(graph, sorted, { exclusive: 1 });
  const inside = op(graph, "Less", [before, topP], shape, {}, "bool");
  const kept = op(graph, "Mul", [sorted, op(graph, "Cast", [inside], shape, { to: 1 }, "float32")], shape);
  const { index } = firstAbove(
    graph,
    kept,
    op(graph, "Unsqueeze", [uniform, graph.constant([1], "int64")], [rows, 1]),
    true,
  );
  const column = op(graph, "Unsqueeze", [index, graph.constant([1], "int64")], [rows, 1]);
  const token = op(graph, "GatherND", [order, column], [rows], { batch_dims: 1 });
  return { token, logProb: logProbOf(graph, probabilities, token) };
}

/**
 * The first position where the cumulative sum of `weights` [rows, n] exceeds a target [rows, 1], which is a fraction of
 * the total or an absolute value; and what is left of the target there. The weight at that position is never 0.
 */
function firstAbove(graph: Graph, weights: Value, target: Value, isFraction: boolean): { index: Value; rest: Value } {
  const [rows, count] = weights.shape as [Shape[number], number];
  const cumulative = cumulativeSum(graph, weights);
  const total = op(
    graph,
    "Slice",
    [cumulative, ...[count - 1, count, 1].map((n) => graph.constant([n], "int64"))],
    [rows, 1],
  );
  const highest = op(graph, "Mul", [total, graph.constant(BELOW_ONE)], [rows, 1]);
  const absolute = isFraction ? op(graph, "Mul", [target, total], [rows, 1]) : target;
  const reachable = op(graph, "Min", [absolute, highest], [rows, 1]);
  const above = op(graph, "Greater", [cumulative, reachable], [rows, count], {}, "bool");
  // The first position has the largest number of those above: CUDA's ArgMax takes no integers, and any of several that are equal.
  const descending = graph.constant(Array.from({ length: count }, (_, i) => count - i));
  const ranks = op(
    graph,
    "Mul",
    [op(graph, "Cast", [above], [rows, count], { to: 1 }, "float32"), descending],
    [rows, count],
  );
  const index = op(graph, "ArgMax", [ranks], [rows], { axis: 1, keepdims: 0 }, "int64");
  const column = op(graph, "Unsqueeze", [index, graph.constant([1], "int64")], [rows, 1]);
  const upTo = op(graph, "GatherElements", [cumulative, column], [rows, 1], { axis: 1 });
  const at = op(graph, "GatherElements", [weights, column], [rows, 1], { axis: 1 });
  const rest = op(graph, "Sub", [reachable, op(graph, "Sub", [upTo, at], [rows, 1])], [rows, 1]);
  return { index, rest: op(graph, "Relu", [rest], [rows, 1]) }; // a rest rounded below 0 would choose a weight of 0
}

/** Of more, ONNX Runtime's CumSum is slow: on CUDA each sum is made from the beginning. */
const LONGEST_SUM = 1024;

/** Of weights [rows, n] along n; the sums rise as the weights are not negative. Long ones in two levels, as in `sampleFromAll`. */
function cumulativeSum(graph: Graph, weights: Value, attributes: { exclusive?: 1 } = {}): Value {
  const [rows, count] = weights.shape as [Shape[number], number];
  const sumOver = (x: Value, axis: number, how: { exclusive?: 1 }) =>
    op(graph, "CumSum", [x, graph.constant(axis, "int64")], x.shape, how);
  const block = blockSize(count);
  if (count <= LONGEST_SUM || block === count) return sumOver(weights, 1, attributes);
  const shape = [rows, count / block, block];
  const blocked = op(graph, "Reshape", [weights, graph.shapeOf(shape)], shape);
  const within = sumOver(blocked, 2, {});
  const last = [block - 1, block, 2].map((n) => graph.constant([n], "int64"));
  const blocks = op(graph, "Slice", [within, ...last], [rows, count / block, 1]);
  const inside = attributes.exclusive ? sumOver(blocked, 2, attributes) : within;
  const sums = op(graph, "Add", [inside, sumOver(blocks, 1, { exclusive: 1 })], shape);
  return op(graph, "Reshape", [sums, graph.shapeOf([rows, count])], [rows, count]);
}

function logProbOf(graph: Graph, probabilities: Value, token: Value): Value {
  const [rows] = probabilities.shape;
  const column = op(graph, "Unsqueeze", [token, graph.constant([1], "int64")], [rows, 1]);
  const probability = op(graph, "GatherND", [probabilities, column], [rows], { batch_dims: 1 });
  return op(graph, "Log", [probability], [rows]);
}

/** The divisor of the vocabulary nearest to its square root from above, so that both levels are short. */
function blockSize(vocabulary: number): number {
  let size = Math.ceil(Math.sqrt(vocabulary));
  while (vocabulary % size !== 0) size++;
  return size;
}
