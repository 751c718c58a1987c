/**
 * Signatures of the operators of the domain `longrun`: each is one or a few kernels of ../kernels, which ../runtime launches. A composite
 * (fused.ts) uses an operator where its kernels serve, and is composed of primitives elsewhere.
 */
import type { Dim, Shape } from "./graph.ts";
import type { DType } from "./tensor.ts";

export const DOMAIN = "longrun";

export interface Signature {
  readonly inputs: readonly DType[];
  readonly outputs: readonly { readonly dtype: DType; readonly shape: OutputShape }[];
  readonly attributes: Readonly<Record<string, "int" | "float">>;
  /** the first output may be written over the first input, if nothing else reads it */
  readonly inPlace?: boolean;
}
/** Returns an output's shape. @param of returns the shape of an input */
type OutputShape = (of: (input: number) => Shape, attributes: Readonly<Record<string, number>>) => Shape;

/** Parts of the vocabulary that are reduced at once, and joined in their order. */
export const SPLITS = 16;
/** Numbers of a row and a part of the vocabulary. */
const STATISTICS = 4;
/** Most partial sums of the gradient of a norm's weight. */
export const NORM_PARTS = 512;
/** Sums of squares that are added up at the end. */
export const SQUARES_PARTS = 512;

const like =
  (input: number): OutputShape =>
  (of) =>
    of(input);
const rowsOf =
  (input: number): OutputShape =>
  (of) => [of(input)[0]!];
const ofSize: OutputShape = (of, { size }) => [of(0)[0]!, size!];
const perHead: OutputShape = (of, { heads }) => [heads!, of(0)[0]!];
const [wide, narrow] = [
  (shape: OutputShape) => ({ dtype: "float32" as const, shape }),
  (shape: OutputShape) => ({ dtype: "bfloat16" as const, shape }),
];
const signature = (
  inputs: readonly DType[],
  outputs: Signature["outputs"],
  attributes: Signature["attributes"] = {},
): Signature => ({ inputs, outputs, attributes });

const [F, B, I] = ["float32", "bfloat16", "int32"] as const;
const HEADS = { heads: "int", keyHeads: "int" } as const;

/** The parts of a norm's gradient that a graph asks for. */
export interface NormParts {
  /** the residual stream goes on after the norm, and has a cotangent */
  continues: boolean;
  /** the norm's input was a sum, whose second part is bfloat16 */
  adds: boolean;
  /** the weight is trained */
  trained: boolean;
}
export const normBackward = ({ continues, adds, trained }: NormParts): string =>
  `NormBackward${continues ? "Continues" : ""}${adds ? "Adds" : ""}${trained ? "Trained" : ""}`;

const TRUTHS = [false, true];
const normBackwards = TRUTHS.flatMap((continues) =>
  TRUTHS.flatMap((adds) =>
    TRUTHS.map((trained): [string, Signature & { parts: NormParts }] => {
      const parts = { continues, adds, trained };
      // cotangent of y, input, weight, 1 / rms, cotangent of the sum
      const inputs = [B, F, F, F, ...(continues ? [F] : [])];
      const outputs = [
        wide(like(1)),
        ...(adds ? [narrow(like(1))] : []),
        ...(trained ? [wide((of) => [NORM_PARTS, of(1)[1]!])] : []),
      ];
      return [normBackward(parts), { ...signature(inputs, outputs), parts }];
    }),
  ),
);
export const NORM_BACKWARDS = Object.fromEntries(normBackwards);

/** Numbers of adapters that share an input. */
const SHARING = [2, 3] as const;
export const downs = (part: "Forward" | "Input" | "Matrices", count: number): string => `Downs${part}${count}`;
const downsOf = (count: number): [string, Signature][] => {
  const each = <T>(value: T): T[] => new Array(count).fill(value);
  const ofRank = narrow((of) => [of(0)[0]!, of(1)[0]!]);
  return [
    // x, each A -> x A^T of each
    [downs("Forward", count), signature([B, ...each(B)], each(ofRank))],
    // each cotangent, each A -> cotangent of x
    [downs("Input", count), signature([...each(B), ...each(B)], [narrow((of) => [of(0)[0]!, of(count)[1]!])])],
    // each cotangent, x -> gradient of each A
    [downs("Matrices", count), signature([...each(B), B], each(narrow((of) => [of(0)[1]!, of(count)[1]!])))],
  ];
};
export const DOWNS = Object.fromEntries(SHARING.flatMap(downsOf));

export const SIGNATURES: Readonly<Record<string, Signature>> = {
  // x, weight -> y, 1 / rms
  Norm: signature([F, F], [narrow(like(0)), wide(rowsOf(0))], { epsilon: "float" }),
  // x, added, weight -> x + added, y, 1 / rms
  AddNorm: signature([F, B, F], [wide(like(0)), narrow(like(0)), wide(rowsOf(0))], { epsilon: "float" }),
  ...NORM_BACKWARDS,
  // gate, up
  Swiglu: signature([B, B], [narrow(like(0))]),
  SwigluBackward: signature([B, B, B], [narrow(like(0)), narrow(like(0))]),
  // x, cosines, sines, positions
  Rotary: signature([B, F, F, "int64"], [narrow(like(0))], { heads: "int", back: "int" }),
  RotaryBiased: signature([B, F, F, F, "int64"], [narrow(like(0))], { heads: "int", back: "int" }),
  // q, k, v, spans -> out, log2 of the sums of exponentials
  Attention: signature([B, B, B, I], [narrow(like(0)), wide(perHead)], HEADS),
  // q, k, v, out, cotangent of out, logs, spans -> cotangents of q, k, v; row sums
  AttentionBackward: signature(
    [B, B, B, B, B, F, I],
    [narrow(like(0)), narrow(like(1)), narrow(like(2)), wide(perHead)],
    HEADS,
  ),
  // hidden, weight, targets, 1 / temperature -> log-probs, entropies, normaliser, statistics
  LogProbs: signature(
    [B, B, I, F],
    [...new Array(3).fill(wide(rowsOf(0))), wide((of) => [SPLITS, STATISTICS, of(0)[0]!])],
  ),
  // hidden, weight, targets, 1 / temperature, normaliser, entropies, cotangents of log-probs and entropies -> cotangent of the logits
  LogProbsBackward: signature([B, B, I, F, F, F, F, F], [narrow((of) => [of(0)[0]!, of(1)[0]!])]),
  ...DOWNS,
  // total, cotangent, order, distinct, begins, ends -> total with the rows of the distinct ids
  EmbeddingGradient: { ...signature([F, F, I, I, I, I], [wide(like(0))]), inPlace: true },
  // x, product and x A^T, transposed B, weight -> x + product + its adapter's, y, 1 / rms
  NormAdapted: signature([F, B, B, F], [wide(like(0)), narrow(like(0)), wide(rowsOf(0))], {
    epsilon: "float",
    scale: "float",
  }),
  // products with gate and up
  SwigluJoined: signature([B], [narrow(ofSize)], { size: "int" }),
  // the same and x A^T of each place, transposed B
  SwigluAdapted: signature([B, B], [narrow(ofSize)], { size: "int", gate: "int", up: "int", scale: "float" }),
  // x, W and A below it, transposed B, bias
  LinearAdapted: signature([B, B, B, F], [narrow((of) => [of(0)[0]!, of(2)[1]!])], {
    firstEnd: "int",
    secondEnd: "int",
    firstPlace: "int",
    secondPlace: "int",
    thirdPlace: "int",
    scale: "float",
  }),
  // x, scales, 1 / rms, each row's factor, weight -> logits
  HeadLogits: signature([F, F, F, F, B], [wide((of) => [of(0)[0]!, of(4)[0]!])]),
  // weights, gradient, first, second, scalars -> new weights, first, second
  AdamW: signature([F, F, F, F, "float64"], [wide(like(0)), wide(like(0)), wide(like(0))]),
  // numbers -> sums of squares of parts
  Squares: signature([F], [{ dtype: "float64", shape: () => [SQUARES_PARTS] }]),
};

/** Sizes must be multiples of this: kernels load 16 bytes at a time, and more than one such piece. */
const ALIGNMENT = 16;
export const isAligned = (size: Dim): boolean => typeof size === "number" && size % ALIGNMENT === 0;

const NORM_BLOCKS = [1024, 2048, 4096, 8192];
/** Returns the kernels of a norm over rows of this size, or undefined where there are none. */
export function normKernels(size: Dim): Record<"forward" | "backward" | "adapted", string> | undefined {
  const block = NORM_BLOCKS.find((most) => (size as number) <= most);
  if (block === undefined || !isAligned(size)) return undefined;
  const name = (kind: string) => `norm_${kind}_${block}`;
  return { forward: name("forward"), backward: name("backward"), adapted: name("adapted") };
}
/** Widths of joined layers must be multiples of this, the largest block of columns: a block is of one layer. */
export const JOINED_COLUMNS = 64;
/** Head sizes of attention's kernels. */
const HEAD_SIZES = [64, 128];
export function attentionKernels(headSize: number) {
  if (!HEAD_SIZES.includes(headSize)) return undefined;
  const name = (part: string) => `attention_${part}_${headSize}`;
  return {
    forward: name("forward"),
    delta: name("delta"),
    backwardKeys: name("backward_kv"),
    backwardQueries: name("backward_q"),
  };
}
/** Largest head size of the kernel of rotary positions. */
const MOST_ROTARY = 128;
export const rotaryKernel = (headSize: number): string | undefined =>
  headSize <= MOST_ROTARY && isAligned(headSize / 2) ? "rotary_turn" : undefined;
