/**
 * The operators of operators.ts as nodes with gradient rules. A composite asks first whether their kernels serve (`fuses`), and is
 * composed of primitives where they do not.
 */
import { custom } from "./emit.ts";
import { type Attribute, type Compute, float, type KernelSource, type Value } from "./graph.ts";
import {
  attentionKernels,
  DOMAIN,
  DOWNS,
  downs,
  isAligned,
  normBackward,
  rotaryKernel,
  SIGNATURES,
} from "./operators.ts";
import { cast, mul, sum } from "./primitives.ts";
import { half, matmul } from "./products.ts";

/** A graph, or the options of one. */
interface OfGraph {
  readonly graph: { readonly model: { readonly compute: Compute; readonly kernels: KernelSource | undefined } };
}

/** Returns whether a graph may use these kernels; undefined: there is none for this shape. */
export const fuses = ({ graph }: OfGraph, ...kernels: (string | undefined)[]): boolean => {
  const { compute, kernels: there } = graph.model;
  return (
    compute === "bfloat16" && there !== undefined && kernels.every((name) => name !== undefined && there.has(name))
  );
};

/** Emits an operator of our own; undefined inputs are left out. */
function own(type: string, given: readonly (Value | undefined)[], attributes: Record<string, number> = {}): Value[] {
  const signature = SIGNATURES[type]!;
  const inputs = given.filter((input) => input !== undefined);
  const outputs = signature.outputs.map(({ dtype, shape }) => ({
    dtype,
    shape: shape((i) => inputs[i]!.shape, attributes),
  }));
  const written = Object.entries(attributes).map(([name, value]): [string, Attribute] => [
    name,
    signature.attributes[name] === "float" ? float(value) : value,
  ]);
  return inputs[0]!.graph.op(type, inputs, Object.fromEntries(written), outputs, DOMAIN);
}

/**
 * Returns total = x + added, and total / rms(total) * weight in bfloat16. x and weight float32, added bfloat16; without `added` x is the
 * total. One pass over memory in each direction.
 */
export function fusedNorm(x: Value, added: Value | undefined, weight: Value, epsilon: number): [Value, Value] {
  let saved: { total: Value; inverse: Value };
  const inputs = added ? [x, added, weight] : [x, weight];
  const outputs = custom(
    "rmsNorm",
    inputs,
    (given) => {
      const made = own(added ? "AddNorm" : "Norm", given, { epsilon });
      const [y, inverse] = made.slice(-2) as [Value, Value];
      const total = added ? made[0]! : given[0]!;
      saved = { total, inverse };
      return added ? [total, y] : [y];
    },
    (cotangents) => {
      const [dTotal, dy] = added ? cotangents : [undefined, cotangents[0]];
      if (!dy) return added ? [dTotal, half(dTotal!), undefined] : [undefined, undefined];
      const parts = { continues: dTotal !== undefined, adds: added !== undefined, trained: weight.requiresGrad };
      const made = own(normBackward(parts), [half(dy), saved.total, weight, saved.inverse, dTotal]);
      const [dx, ...others] = made;
      const dAdded = added ? [others.shift()] : [];
      return [dx, ...dAdded, parts.trained ? sum(others.shift()!, [0]) : undefined];
    },
  );
  return added ? [outputs[0]!, outputs[1]!] : [x, outputs[0]!];
}

/** silu(gate) * up, bfloat16. */
export function fusedSwiglu(gate: Value, up: Value): Value {
  return custom(
    "swiglu",
    [gate, up],
    (given) => own("Swiglu", given),
    ([d]) => own("SwigluBackward", [half(d!), gate, up]),
  )[0]!;
}

interface Turn {
  bias: Value | undefined;
  /** float32 [positions, headSize / 2] */
  table: { cos: Value; sin: Value };
  positions: Value;
  heads: number;
}

/** x + bias turned by each token's angle; x bfloat16 [tokens, heads * headSize], bias float32. */
export function fusedRotary(x: Value, { bias, table: { cos, sin }, positions, heads }: Turn): Value {
  return custom(
    "rotary",
    bias ? [x, bias] : [x],
    ([input, shift]) => own(shift ? "RotaryBiased" : "Rotary", [input, shift, cos, sin, positions], { heads, back: 0 }),
    ([d]) => {
      const [dx] = own("Rotary", [half(d!), cos, sin, positions], { heads, back: 1 });
      return [dx, ...(bias ? [bias.requiresGrad ? sum(cast(dx!, "float32"), [0]) : undefined] : [])];
    },
  )[0]!;
}

/** Returns whether attention with heads of this size is one operator. */
export const fusesAttention = (of: OfGraph, headSize: number): boolean =>
  fuses(of, ...Object.values(attentionKernels(headSize) ?? { none: undefined }));

/**
 * Returns whether rows of tokens can stand one after the other in a graph of these options: attention finds a query's keys, and rotary positions
 * a token's angles, by numbers of each token.
 */
export function packsRows(
  { compute = "float32", kernels }: { compute?: Compute | undefined; kernels?: KernelSource | undefined },
  headSize: number,
): boolean {
  const of = { graph: { model: { compute, kernels } } };
  return fusesAttention(of, headSize) && fuses(of, rotaryKernel(headSize));
}

/** Attention over `spans`: attention.ts. */
export function fusedAttention(
  q: Value,
  k: Value,
  v: Value,
  spans: Value,
  shape: { heads: number; keyValueHeads: number },
): Value {
  const attributes = { heads: shape.heads, keyHeads: shape.keyValueHeads };
  let saved: Value[];
  return custom(
    "attention",
    [half(q), half(k), half(v)],
    (given) => {
      saved = [...given, ...own("Attention", [...given, spans], attributes)];
      return [saved[3]!];
    },
    ([d]) => {
      const [query, key, value, out, logs] = saved;
      const given = [query, key, value, out, half(d!), logs, spans];
      return own("AttentionBackward", given, attributes).slice(0, 3);
    },
  )[0]!;
}

/** Returns whether log-probs over a vocabulary are one operator, whose output layer is one matrix. */
export const fusesLogProbs = (of: Pick<Value, "graph">, vocabulary: number, size: number): boolean =>
  isAligned(vocabulary) && isAligned(size) && fuses(of, "head_forward", "head_combine", "head_backward");

/** Log-probs of targets and entropies, without logits in memory; the backward pass has the logits' cotangents, in bfloat16. */
export function fusedLogProbs(
  hidden: Value,
  weight: Value,
  targets: Value,
  inverseTemperature: Value,
): { logProbs: Value; entropies: Value } {
  const [x, w] = [half(hidden), half(weight)];
  let saved: Value[];
  const [logProbs, entropies] = custom(
    "tokenLogProbs",
    [x, w],
    ([input, matrix]) => {
      saved = own("LogProbs", [input, matrix, targets, inverseTemperature]);
      return saved.slice(0, 2);
    },
    ([dLogProb, dEntropy]) => {
      const [, entropy, normaliser] = saved;
      const slopes = [dLogProb ?? mul(dEntropy!, 0), dEntropy ?? mul(dLogProb!, 0)];
      const given = [x, w, targets, inverseTemperature, normaliser, entropy, ...slopes];
      // of all entries at once: sums over parts cancel each other, and would each be rounded
      const [dLogits] = own("LogProbsBackward", given);
      return [
        x.requiresGrad ? matmul(dLogits!, w) : undefined,
        w.requiresGrad ? matmul(dLogits!, x, { transA: true }) : undefined,
      ];
    },
  );
  return { logProbs: logProbs!, entropies: entropies! };
}

/** Returns whether the gradient of an embedding [vocabulary, size] is one operator. */
export const fusesEmbedding = (weight: Value): boolean =>
  weight.dtype === "float32" && isAligned(weight.shape[1]!) && fuses(weight, "embedding_gradient");

/** total [vocabulary, size] with the sums of d over the places of each distinct id added to its rows, in the order of the places. */
export const fusedEmbeddingGradient = (
  total: Value,
  d: Value,
  { order, distinct, begins, ends }: Record<"order" | "distinct" | "begins" | "ends", Value>,
): Value => own("EmbeddingGradient", [total, d, order, distinct, begins, ends])[0]!;

/** Returns whether the products of x with two or three A of one rank are one operator. */
export const fusesDowns = (x: Value, matrices: readonly Value[]): boolean =>
  downs("Forward", matrices.length) in DOWNS &&
  isAligned(x.shape[1]!) &&
  fuses(x, "downs_forward", "downs_input", "downs_matrices");

/** x A^T of each A [rank, size], bfloat16. */
export const fusedDowns = (x: Value, matrices: readonly Value[]): Value[] =>
  own(downs("Forward", matrices.length), [x, ...matrices]);

/** The sum of d A of all. */
export const fusedDownsInput = (cotangents: readonly Value[], matrices: readonly Value[]): Value =>
  own(downs("Input", matrices.length), [...cotangents, ...matrices])[0]!;

/** d^T x of each. */
export const fusedDownsMatrices = (cotangents: readonly Value[], x: Value): Value[] =>
  own(downs("Matrices", cotangents.length), [...cotangents, x]);

// ---- operators of generation, which have no gradient

/** What a kernel reads of an adapter beside joined layers: the transposed B of all layers, [rank, sum of out], and alpha / rank. */
export interface AdapterUp {
  up: Value;
  scale: number;
}

/**
 * Returns total = x + the output of an adapted layer, float32, its `rmsNorm` in bfloat16, and 1 / rms. @param product with W and the A below it,
 * bfloat16 [rows, out and more]
 */
export function fusedNormAdapted(x: Value, product: Value, { up, scale }: AdapterUp, weight: Value, epsilon: number) {
  const [total, normed, inverse] = own("NormAdapted", [x, product, up, weight], { epsilon, scale });
  return { total: total!, normed: normed!, inverse: inverse! };
}

/** As `fusedNorm` of a sum, with 1 / rms and without a gradient. */
export function fusedNormOutput(x: Value, added: Value, weight: Value, epsilon: number) {
  const [total, normed, inverse] = own("AddNorm", [x, half(added), weight], { epsilon });
  return { total: total!, normed: normed!, inverse: inverse! };
}

/** silu(gate) * up, bfloat16 [rows, size], of a product that has both, and x A^T of the adapters' places if there is an adapter. */
export function fusedSwigluJoined(
  product: Value,
  size: number,
  adapter?: AdapterUp & { places: readonly number[] },
): Value {
  if (!adapter) return own("SwigluJoined", [product], { size })[0]!;
  const [gate, up] = adapter.places as [number, number];
  return own("SwigluAdapted", [product, adapter.up], { size, gate, up, scale: adapter.scale })[0]!;
}

/**
 * The outputs of one to three joined and adapted layers in one product, bfloat16 [rows, sum of out]. @param stacked the layers' W and the A of each
 * place below, bfloat16; `ends`: the columns at which the layers end; `places`: of each layer's A
 */
export function fusedLinearAdapted(
  x: Value,
  stacked: Value,
  { up, scale, ends, places }: AdapterUp & { ends: readonly number[]; places: readonly number[] },
  bias: Value,
): Value {
  const [firstEnd, secondEnd = firstEnd] = ends as [number, number?];
  const [firstPlace, secondPlace = 0, thirdPlace = 0] = places as [number, number?, number?];
  const attributes = { firstEnd, secondEnd, firstPlace, secondPlace, thirdPlace, scale };
  return own("LinearAdapted", [half(x), stacked, up, bias], attributes)[0]!;
}

/** Logits of x scales / rms times each row's factor, as exact as float32; x float32, weight bfloat16 [vocabulary, size], which is read once. */
export const fusedHead = (x: Value, scales: Value, inverse: Value, factors: Value, weight: Value): Value =>
  own("HeadLogits", [x, scales, inverse, factors, weight])[0]!;

const ADAMW = ["adamw", "adamw_any"];
const SQUARES = ["squares", "squares_any"];
export const fusesAdamW = (of: Pick<Value, "graph">): boolean => fuses(of, ...ADAMW, ...SQUARES);

/** AdamW's step over float32 numbers [block]; `scalars` float64, in the order of kernels/optimiser.py. */
export function fusedAdamW(
  given: Record<"weights" | "gradient" | "first" | "second", Value>,
  scalars: Value,
): Record<"weights" | "first" | "second", Value> {
  const { weights: w, gradient, first: m, second: v } = given;
  const [weights, first, second] = own("AdamW", [w, gradient, m, v, scalars]) as [Value, Value, Value];
  return { weights, first, second };
}

/** Returns sums of squares of parts of float32 numbers [block], float64. */
export const fusedSquares = (numbers: Value): Value => own("Squares", [numbers])[0]!;
