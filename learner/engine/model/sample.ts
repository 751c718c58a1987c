import { float, type Graph, type Shape, type Value } from "../graph/graph.ts";
import type { DType } from "../graph/tensor.ts";

/**
 * Choosing a token from logits already divided by the temperature, float32 [rows, vocabulary]. Randomness comes in as
 * one uniform number in [0, 1) per row: the token is where the cumulative probability first exceeds it (inverse CDF).
 * The probability returned is the token's under the full distribution, also when only the nucleus is sampled from.
 */
export interface Sampled {
  readonly token: Value; // int64 [rows]
  readonly probability: Value; // float32 [rows]; its logarithm in the graph would depend on a row's place in the batch by the last bit
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
  const probabilities = op(graph, "Softmax", [logits], logits.shape, { axis: -1 });
  return sampled(graph, probabilities, mostProbable(graph, logits));
}

/** A token of the whole vocabulary. */
export function sampleFromAll(graph: Graph, logits: Value, uniform: Value): Sampled {
  const probabilities = op(graph, "Softmax", [logits], logits.shape, { axis: -1 });
  return sampled(graph, probabilities, draw(graph, probabilities, uniform));
}

/**
 * What each row asks for, with the bits of the two functions above where it asks for that: the most probable token where `uniform` is
 * below 0; a token of the whole vocabulary where `topP` is 1; else a token of the nucleus. The nucleus is the smallest set of most
 * probable tokens whose probabilities sum to at least `topP`, renormalised. The token that reaches `topP` belongs to it, so that it is
 * never empty. So do all tokens as probable as that one: a token is in the nucleus if the tokens more probable than itself sum to less
 * than `topP`.
 *
 * @param topP float32 [rows]
 */
export function sampleMixed(graph: Graph, logits: Value, uniform: Value, topP: Value): Sampled {
  const [rows] = logits.shape as [Shape[number]];
  const probabilities = op(graph, "Softmax", [logits], logits.shape, { axis: -1 });
  const share = op(graph, "Unsqueeze", [topP, graph.constant([1], "int64")], [rows, 1]);
  const isNucleus = op(graph, "Less", [share, graph.constant(1)], [rows, 1], {}, "bool");
  const some = nucleus(graph, probabilities, share);
  const weights = op(graph, "Where", [isNucleus, some, probabilities], logits.shape, {}, "float32");
  const isGreedy = op(graph, "Less", [uniform, graph.constant(0)], [rows], {}, "bool");
  const tokens = [mostProbable(graph, logits), draw(graph, weights, uniform)];
  return sampled(graph, probabilities, op(graph, "Where", [isGreedy, ...tokens], [rows], {}, "int64"));
}

/** The lowest probability in a nucleus is sought between 2^-OCTAVES and 1. Tokens below sum to less than a float32 near 1 can show. */
const OCTAVES = 48;
/** Each halves the range's logarithm. After 24, probabilities that differ by a factor of 1 + 2e-6 count as equal; neighbouring float32 logits of 16 differ so. */
const HALVINGS = 24;

/**
 * Weights [rows, vocabulary] in proportion to the probabilities of the nucleus' tokens, and 0 for all others. The smallest
 * scale is sought at which the tokens whose scaled probability is above 1 sum to at least `topP`. Each step halves the range
 * and reads the probabilities once. A sort (TopK) takes ten times as long on the CPU, and on CUDA eight launches for every row.
 *
 * @param topP float32 [rows, 1]
 */
export function nucleus(graph: Graph, probabilities: Value, topP: Value): Value {
  const column = [probabilities.shape[0], 1];
  const shares = op(graph, "Div", [probabilities, topP], probabilities.shape); // shares of the nucleus sum to at least 1
  // What is not above the threshold becomes 0: in ONNX Runtime one fast kernel, where a comparison and a choice are two slow ones.
  const inside = (scale: Value): Value => {
    const scaled = op(graph, "Mul", [shares, scale], shares.shape);
    return op(graph, "ThresholdedRelu", [scaled], scaled.shape, { alpha: float(1) });
  };
  const first = graph.constant([2 ** OCTAVES], "float32", [1, 1]);
  let scale = op(graph, "Mul", [topP, first], topP.shape);
  for (let halving = 1; halving <= HALVINGS; halving++) {
    const smaller = op(graph, "Mul", [scale, graph.constant(2 ** (-OCTAVES / 2 ** halving))], scale.shape);
    const sum = op(graph, "ReduceSum", [inside(smaller), graph.constant([1], "int64")], column, { keepdims: 1 });
    const reached = op(graph, "GreaterOrEqual", [sum, smaller], column, {}, "bool");
    scale = op(graph, "Where", [reached, smaller, scale], column, {}, "float32");
  }
  return inside(scale);
}

/**
 * A token of each row, drawn by weights [rows, vocabulary]. The cumulative sum runs in two levels, over blocks and then within
 * the chosen block, because CumSum over the vocabulary costs as much as the output layer. GatherElements takes what is chosen, as
 * CUDA's GatherND copies from the host.
 */
function draw(graph: Graph, weights: Value, uniform: Value): Value {
  const [rows, vocabulary] = weights.shape as [Shape[number], number];
  const block = blockSize(vocabulary);
  const blocks = vocabulary / block;
  const blocked = op(graph, "Reshape", [weights, graph.constant([-1, blocks, block], "int64")], [rows, blocks, block]);
  const sums = op(graph, "ReduceSum", [blocked, graph.constant([2], "int64")], [rows, blocks], { keepdims: 0 });
  const first = firstAbove(
    graph,
    sums,
    op(graph, "Unsqueeze", [uniform, graph.constant([1], "int64")], [rows, 1]),
    true,
  );
  const index = op(graph, "Unsqueeze", [first.index, graph.constant([1, 2], "int64")], [rows, 1, 1]);
  const everywhere = op(graph, "Expand", [index, graph.constant([1, 1, block], "int64")], [rows, 1, block]);
  const within = op(graph, "GatherElements", [blocked, everywhere], [rows, 1, block], { axis: 1 }, "float32");
  const chosen = op(graph, "Squeeze", [within, graph.constant([1], "int64")], [rows, block]);
  const second = firstAbove(graph, chosen, first.rest, false);
  const base = op(graph, "Mul", [first.index, graph.constant(block, "int64")], [rows]);
  return op(graph, "Add", [base, second.index], [rows]);
}

/**
 * The first position where the cumulative sum of `weights` [rows, n] exceeds a target [rows, 1], which is a fraction of
 * the total or an absolute value; and what is left of the target there. The weight at that position is never 0.
 */
function firstAbove(graph: Graph, weights: Value, target: Value, isFraction: boolean): { index: Value; rest: Value } {
  const [rows, count] = weights.shape as [Shape[number], number];
  const cumulative = op(graph, "CumSum", [weights, graph.constant(1, "int64")], weights.shape);
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

const mostProbable = (graph: Graph, logits: Value): Value =>
  op(graph, "ArgMax", [logits], [logits.shape[0]!], { axis: 1, keepdims: 0 }, "int64");

function sampled(graph: Graph, probabilities: Value, token: Value): Sampled {
  const [rows] = probabilities.shape as [Shape[number]];
  const column = op(graph, "Unsqueeze", [token, graph.constant([1], "int64")], [rows, 1]);
  const probability = op(graph, "GatherElements", [probabilities, column], [rows, 1], { axis: 1 });
  return { token, probability: op(graph, "Squeeze", [probability, graph.constant([1], "int64")], [rows]) };
}

/** The divisor of the vocabulary nearest to its square root from above, so that both levels are short. */
function blockSize(vocabulary: number): number {
  let size = Math.ceil(Math.sqrt(vocabulary));
  while (vocabulary % size !== 0) size++;
  return size;
}
