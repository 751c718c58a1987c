/** The kernels that each operator of graph/operators.ts launches, with their grids and arguments. */
import {
  attentionKernels,
  downs,
  NORM_BACKWARDS,
  NORM_PARTS,
  type NormParts,
  normKernels,
  SPLITS,
  SQUARES_PARTS,
} from "../graph/operators.ts";
import type { Pointer } from "./api.ts";
import { constantOf } from "./kernels.ts";

interface Call {
  /** the shape of an input */
  of(input: number): readonly number[];
  readonly attributes: Readonly<Record<string, number>>;
  /** addresses */
  readonly inputs: readonly Pointer[];
  readonly outputs: readonly Pointer[];
  run(kernel: string, grid: readonly [number, number?], given: readonly (Pointer | number)[]): void;
  /** Copies bytes from one address to another one, in the order of the stream. */
  copy(to: Pointer, from: Pointer, bytes: number): void;
}
export type Launch = (call: Call) => void;

/** RANKS in ../kernels/adapters.py: ranks of a block. */
const RANKS = 16;
/** An argument that the kernel does not use. */
const UNUSED = 0n;
const [FORWARDS, BACKWARDS] = [1, -1]; // directions of rotary positions

/** Blocks of a kernel along an axis of this size. */
const blocks = (kernel: string, constant: string, size: number): number =>
  Math.ceil(size / constantOf(kernel, constant));

const norm =
  (adds: boolean): Launch =>
  ({ of, attributes, inputs, outputs, run }) => {
    const [rows, size] = of(0) as [number, number];
    const [x, added, weight] = adds ? inputs : [inputs[0], UNUSED, inputs[1]];
    const [total, y, inverse] = adds ? outputs : [UNUSED, ...outputs];
    const given = [x!, added!, weight!, total!, y!, inverse!, attributes.epsilon!, size, Number(adds)];
    run(normKernels(size)!.forward, [rows], given);
  };

const normBackward =
  ({ continues, adds, trained }: NormParts): Launch =>
  ({ of, inputs, outputs, run }) => {
    const [rows, size] = of(1) as [number, number];
    const [dy, x, weight, inverse, dTotal = UNUSED] = inputs as [Pointer, Pointer, Pointer, Pointer, Pointer?];
    const [dx, ...others] = outputs as [Pointer, ...Pointer[]];
    const dAdded = adds ? others.shift()! : UNUSED;
    const dWeight = trained ? others.shift()! : UNUSED;
    // with a trained weight every program writes its partial sum, also one without rows
    const each = trained ? Math.ceil(rows / NORM_PARTS) : 1;
    const flags = [continues, adds, trained].map(Number);
    const given = [dy, x, weight, inverse, dTotal, dx, dAdded, dWeight, rows, size, each, ...flags];
    run(normKernels(size)!.backward, [trained ? NORM_PARTS : rows], given);
  };

const rotary =
  (biased: boolean): Launch =>
  ({ of, attributes: { heads, back }, inputs, outputs, run }) => {
    const [tokens, width] = of(0) as [number, number];
    const [x, bias, ...table] = biased ? inputs : [inputs[0], UNUSED, ...inputs.slice(1)];
    const half = width / heads! / 2;
    const given = [x!, bias!, ...table, outputs[0]!, back ? BACKWARDS : FORWARDS, heads!, half, Number(biased)];
    run("rotary_turn", [tokens, blocks("rotary_turn", "HEADS", heads!)], given);
  };

const elementwise =
  (kernel: string): Launch =>
  ({ of, inputs, outputs, run }) => {
    const count = of(0).reduce((a, b) => a * b, 1);
    run(kernel, [blocks(kernel, "BLOCK", count)], [...inputs, ...outputs, count]);
  };

/** The arguments of attention's kernels after their pointers. */
function attentionSizes({ of, attributes: { heads, keyHeads } }: Pick<Call, "of" | "attributes">) {
  const [tokens, width] = of(0) as [number, number];
  const headSize = width / heads!;
  return { tokens, names: attentionKernels(headSize)!, sizes: [tokens, 1 / Math.sqrt(headSize), heads!, keyHeads!] };
}

const attention: Launch = (call) => {
  const { inputs, outputs, run, attributes } = call;
  const { tokens, names, sizes } = attentionSizes(call);
  run(names.forward, [blocks(names.forward, "BM", tokens), attributes.heads!], [...inputs, ...outputs, ...sizes]);
};

const attentionBackward: Launch = (call) => {
  const { run, attributes } = call;
  const { heads, keyHeads } = attributes as { heads: number; keyHeads: number };
  const { tokens, names, sizes } = attentionSizes(call);
  const [q, k, v, out, d, logs, spans] = call.inputs as [Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer];
  const [dq, dk, dv, delta] = call.outputs as [Pointer, Pointer, Pointer, Pointer];
  const given = [q, k, v, d, logs, delta, spans];
  run(names.delta, [blocks(names.delta, "BM", tokens), heads], [out, d, delta, tokens, heads]);
  run(names.backwardKeys, [blocks(names.backwardKeys, "BN", tokens), keyHeads], [...given, dk, dv, ...sizes]);
  run(names.backwardQueries, [blocks(names.backwardQueries, "BM", tokens), heads], [...given, dq, ...sizes]);
};

const logProbs: Launch = ({ of, inputs, outputs, run }) => {
  const [[rows, size], [vocabulary]] = [of(0), of(1)] as [[number, number], [number]];
  const [logProb, entropy, normaliser, statistics] = outputs as [Pointer, Pointer, Pointer, Pointer];
  // a part begins at a block of entries
  const each = constantOf("head_forward", "BN") * Math.ceil(blocks("head_forward", "BN", vocabulary) / SPLITS);
  const grid = [blocks("head_forward", "BM", rows), SPLITS] as const;
  run("head_forward", grid, [...inputs, statistics, rows, size, vocabulary, each]);
  const joined = [statistics, logProb, entropy, normaliser, rows, SPLITS];
  run("head_combine", [blocks("head_combine", "BLOCK", rows)], joined);
};

const logProbsBackward: Launch = ({ of, inputs, outputs, run }) => {
  const [[rows, size], [vocabulary]] = [of(0), of(1)] as [[number, number], [number]];
  const grid = [blocks("head_backward", "BM", rows), blocks("head_backward", "BN", vocabulary)] as const;
  run("head_backward", grid, [...inputs, ...outputs, rows, size, vocabulary]);
};

/** Addresses of two or three adapters; the third is unused if there are two. */
const three = (addresses: readonly Pointer[]): Pointer[] => [...addresses, addresses[0]!].slice(0, 3);

const downsLaunches = (count: number): Record<string, Launch> => ({
  [downs("Forward", count)]: ({ of, inputs: [x, ...matrices], outputs, run }) => {
    const [[rows, size], [rank]] = [of(0), of(1)] as [[number, number], [number]];
    const grid = [blocks("downs_forward", "BM", rows), Math.ceil(rank / RANKS)] as const;
    run("downs_forward", grid, [x!, ...three(matrices), ...three(outputs), rows, size, rank, Number(count > 2)]);
  },
  [downs("Input", count)]: ({ of, inputs, outputs, run }) => {
    const [[rows, rank], [, size]] = [of(0), of(count)] as [[number, number], [number, number]];
    const grid = [blocks("downs_input", "BM", rows), blocks("downs_input", "BN", size)] as const;
    const given = [...three(inputs.slice(0, count)), ...three(inputs.slice(count)), ...outputs];
    run("downs_input", grid, [...given, rows, size, rank, Number(count > 2)]);
  },
  [downs("Matrices", count)]: ({ of, inputs, outputs, run }) => {
    const [[rows, rank], [, size]] = [of(0), of(count)] as [[number, number], [number, number]];
    const grid = [blocks("downs_matrices", "BN", size), Math.ceil(rank / RANKS)] as const;
    const given = [...three(inputs.slice(0, count)), inputs[count]!, ...three(outputs)];
    run("downs_matrices", grid, [...given, rows, size, rank, Number(count > 2)]);
  },
});

/** The adapter's sums are added to the product, which the kernel reads anyway. */
const normAdapted: Launch = ({ of, attributes: { epsilon, scale }, inputs, outputs, run }) => {
  const [[rows, size], [, stride], [rank]] = [of(0), of(1), of(2)] as [[number, number], [number, number], [number]];
  run(normKernels(size)!.adapted, [rows], [...inputs, ...outputs, epsilon!, scale!, size, stride, rank]);
};

const swigluJoined: Launch = ({ of, attributes, inputs: [product, up], outputs: [out], run }) => {
  const [rows, stride] = of(0) as [number, number];
  const { size, scale = 0, gate = 0, up: place = 0 } = attributes as { size: number } & typeof attributes;
  const rank = up === undefined ? 0 : of(1)[0]!;
  const grid = [blocks("swiglu_joined", "BM", rows), blocks("swiglu_joined", "BN", size)] as const;
  run("swiglu_joined", grid, [product!, up ?? UNUSED, out!, scale, rows, size, stride, rank, gate, place]);
};

const linearAdapted: Launch = ({ of, attributes, inputs, outputs, run }) => {
  const [[rows, size], [rank, out]] = [of(0), of(2)] as [[number, number], [number, number]];
  const { scale, firstEnd, secondEnd, firstPlace, secondPlace, thirdPlace } = attributes;
  const kernel = rows <= constantOf("linear_adapted_few", "BM") ? "linear_adapted_few" : "linear_adapted_many";
  const layers = [firstEnd, secondEnd, firstPlace, secondPlace, thirdPlace] as number[];
  const given = [...inputs, ...outputs, scale!, rows, size, out, rank, ...layers];
  run(kernel, [blocks(kernel, "BN", out), blocks(kernel, "BM", rows)], given);
};

const headLogits: Launch = ({ of, inputs, outputs, run }) => {
  const [[rows, size], [vocabulary]] = [of(0), of(4)] as [[number, number], [number]];
  // blocks of rows that share a part of the weight run one after the other
  const grid = [blocks("head_logits", "BM", rows), blocks("head_logits", "BN", vocabulary)] as const;
  run("head_logits", grid, [...inputs, ...outputs, rows, size, vocabulary]);
};

const FLOAT32_BYTES = 4;
const embeddingGradient: Launch = ({ of, inputs, outputs: [out], run, copy }) => {
  const [[vocabulary, size], [distinct]] = [of(0), of(3)] as [[number, number], [number]];
  if (inputs[0] !== out) copy(out!, inputs[0]!, FLOAT32_BYTES * vocabulary * size);
  const given = [...inputs, out!, size];
  run("embedding_gradient", [distinct, blocks("embedding_gradient", "BLOCK", size)], given);
};

const ALIGNMENT = 16;
/** The kernel for aligned numbers, or for any. */
const variant = (name: string, count: number, addresses: readonly Pointer[]): string =>
  count % ALIGNMENT === 0 && addresses.every((address) => address % BigInt(ALIGNMENT) === 0n) ? name : `${name}_any`;

const adamw: Launch = ({ of, inputs, outputs, run }) => {
  const [count] = of(0) as [number];
  const kernel = variant("adamw", count, [...inputs, ...outputs]);
  run(kernel, [blocks(kernel, "BLOCK", count)], [...inputs, ...outputs, count]);
};

const squares: Launch = ({ of, inputs, outputs, run }) => {
  const [count] = of(0) as [number];
  const kernel = variant("squares", count, inputs);
  const each = Math.ceil(blocks(kernel, "BLOCK", count) / SQUARES_PARTS);
  run(kernel, [SQUARES_PARTS], [...inputs, ...outputs, count, each]);
};

export const LAUNCHES: Readonly<Record<string, Launch>> = {
  Norm: norm(false),
  AddNorm: norm(true),
  ...Object.fromEntries(Object.entries(NORM_BACKWARDS).map(([name, { parts }]) => [name, normBackward(parts)])),
  Swiglu: elementwise("swiglu_forward"),
  SwigluBackward: elementwise("swiglu_backward"),
  Rotary: rotary(false),
  RotaryBiased: rotary(true),
  Attention: attention,
  AttentionBackward: attentionBackward,
  LogProbs: logProbs,
  LogProbsBackward: logProbsBackward,
  ...downsLaunches(2),
  ...downsLaunches(3),
  EmbeddingGradient: embeddingGradient,
  NormAdapted: normAdapted,
  SwigluJoined: swigluJoined,
  SwigluAdapted: swigluJoined,
  LinearAdapted: linearAdapted,
  HeadLogits: headLogits,
  AdamW: adamw,
  Squares: squares,
};
