import { float, type Shape, type Value } from "../graph/graph.ts";
import * as ops from "../graph/primitives.ts";

/**
 * Choosing a token from logits already divided by the temperature, float32 [rows, vocabulary]. Randomness comes in as
 * one uniform number in [0, 1) per row: the token is where the cumulative probability first exceeds it (inverse CDF).
 * The probability returned is the token's under the full distribution, also when only the nucleus is sampled from.
 */
interface Sampled {
  readonly token: Value; // int64 [rows]
  readonly probability: Value; // float32 [rows]; its logarithm in the graph would depend on a row's place in the batch by the last bit
}

/** Sums of float32 probabilities are a little off 1; a target this far below the sum always has a token above it. */
const BELOW_ONE = 1 - 2 ** -23;

const op = (type: string, x: Value, others: readonly Value[], shape: Shape, attributes = {}, dtype = x.dtype): Value =>
  x.graph.op(type, [x, ...others], attributes, [{ dtype, shape }])[0]!;
/** The index of the largest number, int64 [rows]. The CPU takes the first of equal numbers; CUDA may take another. */
const argMax = (x: Value) => op("ArgMax", x, [], [x.shape[0]!], { axis: 1, keepdims: 0 }, "int64");
const column = (x: Value) => ops.reshape(x, [x.shape[0]!, 1]);
const flat = (x: Value) => ops.reshape(x, [x.shape[0]!]);
/** x[row, index[row]] as a column */
const entryOf = (x: Value, index: Value) => ops.gatherElements(x, column(index));

const sampled = (probabilities: Value, token: Value): Sampled => ({
  token,
  probability: flat(entryOf(probabilities, token)),
});

/** Takes the most probable token, the first of equal ones. */
export const sampleGreedy = (logits: Value): Sampled => sampled(ops.softmax(logits), argMax(logits));

/** Draws a token from the whole vocabulary. */
export function sampleFromAll(logits: Value, uniform: Value): Sampled {
  const probabilities = ops.softmax(logits);
  return sampled(probabilities, draw(probabilities, uniform));
}

/**
 * Samples each row by its own method: takes the most probable token where `uniform` is below 0, draws from the whole vocabulary where
 * `topP` is 1, and else draws from the nucleus. The first two ways give the same bits as the two functions above. The nucleus is the
 * smallest set of most probable tokens whose probabilities sum to at least `topP`, renormalised. A token belongs to it if the tokens that
 * are more probable sum to less than `topP`; so the token that reaches `topP` belongs to it, with all tokens of the same
 * probability, and the nucleus is never empty.
 *
 * @param topP float32 [rows]
 */
export function sampleMixed(logits: Value, uniform: Value, topP: Value): Sampled {
  const probabilities = ops.softmax(logits);
  const share = column(topP);
  const weights = ops.where(ops.less(share, 1), nucleus(probabilities, share), probabilities);
  return sampled(probabilities, ops.where(ops.less(uniform, 0), argMax(logits), draw(weights, uniform)));
}

/** The lowest probability in a nucleus is sought between 2^-OCTAVES and 1. Tokens below sum to less than a float32 near 1 can show. */
const OCTAVES = 48;
/** Number of halvings of the range's logarithm. After 24, probabilities that differ by a factor of 1 + 2e-6 count as equal; neighbouring float32 logits of 16 differ so. */
const HALVINGS = 24;

/**
 * Weights [rows, vocabulary] in proportion to the probabilities of the nucleus' tokens, and 0 for all others. The smallest
 * scale is sought at which the tokens whose scaled probability is above 1 sum to at least `topP`. Each step halves the range
 * and reads the probabilities once. A sort (TopK) takes ten times as long on the CPU, and on CUDA eight launches for every row.
 *
 * @param topP float32 [rows, 1]
 */
export function nucleus(probabilities: Value, topP: Value): Value {
  const shares = ops.div(probabilities, topP); // shares of the nucleus sum to at least 1
  // ThresholdedRelu sets numbers up to the threshold to 0 in one fast kernel; a comparison and a choice are two slow ones.
  const inside = (scale: Value): Value =>
    op("ThresholdedRelu", ops.mul(shares, scale), [], shares.shape, { alpha: float(1) });
  let scale = ops.mul(topP, 2 ** OCTAVES);
  for (let halving = 1; halving <= HALVINGS; halving++) {
    const smaller = ops.mul(scale, 2 ** (-OCTAVES / 2 ** halving));
    scale = ops.where(ops.greaterOrEqual(ops.sum(inside(smaller), [1], true), smaller), smaller, scale);
  }
  return inside(scale);
}

/**
 * A token of each row, drawn by weights [rows, vocabulary]. The cumulative sum runs in two levels, over blocks and then within
 * the chosen block, because CumSum over the vocabulary costs as much as the output layer. GatherElements reads the chosen block, because
 * CUDA's GatherND copies from the host.
 */
function draw(weights: Value, uniform: Value): Value {
  const [rows, vocabulary] = weights.shape as [Shape[number], number];
  const size = blockSize(vocabulary);
  const blocks = ops.reshape(weights, [rows, vocabulary / size, size]);
  const first = firstAbove(ops.sum(blocks, [2]), column(uniform), true);
  const sizes = weights.graph.constant([1, 1, size], "int64");
  const everywhere = op("Expand", ops.reshape(first.index, [rows, 1, 1]), [sizes], [rows, 1, size]);
  const block = op("GatherElements", blocks, [everywhere], [rows, 1, size], { axis: 1 });
  const second = firstAbove(ops.reshape(block, [rows, size]), first.rest, false);
  return ops.add(ops.mul(first.index, weights.graph.constant(size, "int64")), second.index);
}

/**
 * The first position where the cumulative sum of `weights` [rows, n] exceeds a target [rows, 1], which is a fraction of
 * the total or an absolute value; and the rest of the target there. The weight at that position is never 0.
 */
function firstAbove(weights: Value, target: Value, isFraction: boolean): { index: Value; rest: Value } {
  const { graph, shape } = weights;
  const count = shape[1] as number;
  const cumulative = ops.cumSum(weights, 1);
  const total = ops.slice(cumulative, 1, count - 1, count);
  const aim = isFraction ? ops.mul(target, total) : target;
  const reachable = ops.minimum(aim, ops.mul(total, BELOW_ONE));
  const above = op("Greater", cumulative, [reachable], shape, {}, "bool");
  // The first position has the largest number of those above: CUDA's ArgMax takes no integers, and any of several that are equal.
  const descending = graph.constant(Array.from({ length: count }, (_, i) => count - i));
  const index = argMax(ops.mul(ops.cast(above, "float32"), descending));
  const before = ops.sub(entryOf(cumulative, index), entryOf(weights, index));
  const rest = op("Relu", ops.sub(reachable, before), [], [shape[0]!, 1]);
  return { index, rest }; // a rest rounded below 0 would choose a weight of 0
}

/** The divisor of the vocabulary nearest to its square root from above, so that both levels are short. */
function blockSize(vocabulary: number): number {
  let size = Math.ceil(Math.sqrt(vocabulary));
  while (vocabulary % size !== 0) size++;
  return size;
}
