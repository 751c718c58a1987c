/** A case for each gradient rule of this folder, for `checkGradient`. */
import { attention, branchMasks, MASKED } from "./attention.ts";
import { affine, embedding, embeddingPlan, rmsNorm, rotary, rows, swiglu } from "./composites.ts";
import { draw, type GradientCase } from "./differences.fixture.ts";
import { stopGradient } from "./emit.ts";
import type { Graph, Value } from "./graph.ts";
import * as op from "./primitives.ts";
import * as products from "./products.ts";
import { checkpoint } from "./recomputation.ts";
import { tensor, tensorOf } from "./tensor.ts";

const POSITIVE: [number, number] = [0.5, 2];
const angles = (g: Graph) => {
  const angle = draw(6, [0, 3], 5);
  const sin = g.initializer("sin", tensor(angle.map(Math.sin), [3, 2]));
  return { cos: g.initializer("cos", tensor(angle.map(Math.cos), [3, 2])), sin, negativeSin: op.neg(sin) };
};
const ints = (g: Graph, values: number[], shape = [values.length]) =>
  g.initializer(`ints${values}`, tensorOf("int32", values, shape));

export const CASES: GradientCase[] = [
  {
    name: "add, broadcast both ways",
    shapes: [
      [2, 1, 3],
      [4, 1],
    ],
    f: ([a, b]) => op.add(a, b),
  },
  { name: "add of itself", shapes: [[3]], f: ([a]) => op.add(a, a) },
  { name: "sub, broadcast", shapes: [[2, 3], [3]], f: ([a, b]) => op.sub(a, b) },
  { name: "sub from a number", shapes: [[3]], f: ([a]) => op.sub(2, a) },
  {
    name: "mul, broadcast",
    shapes: [
      [2, 3],
      [2, 1],
    ],
    f: ([a, b]) => op.mul(a, b),
  },
  { name: "mul with a scalar value", shapes: [[2, 3], []], f: ([a, b]) => op.mul(a, b) },
  { name: "div, broadcast", shapes: [[3], [2, 3]], range: POSITIVE, f: ([a, b]) => op.div(a, b) },
  { name: "maximum", shapes: [[2, 3], [3]], f: ([a, b]) => op.maximum(a, b) },
  { name: "minimum with a number", shapes: [[6]], f: ([a]) => op.minimum(a, 0.1) },
  { name: "where", shapes: [[2, 3], [3]], f: ([a, b]) => op.where(op.less(0, stopGradient(a)), a, b) },
  { name: "neg", shapes: [[3]], f: ([a]) => op.neg(a) },
  { name: "exp", shapes: [[3]], f: ([a]) => op.exp(a) },
  { name: "log", shapes: [[3]], range: POSITIVE, f: ([a]) => op.log(a) },
  { name: "sqrt", shapes: [[3]], range: POSITIVE, f: ([a]) => op.sqrt(a) },
  { name: "sigmoid", shapes: [[3]], f: ([a]) => op.sigmoid(a) },
  { name: "silu", shapes: [[5]], range: [-3, 3], f: ([a]) => op.silu(a) },
  { name: "square", shapes: [[3]], f: ([a]) => op.square(a) },
  { name: "clip", shapes: [[8]], range: [-2, 2], f: ([a]) => op.clip(a, -0.7, 0.9) },
  { name: "cast there and back", shapes: [[3]], f: ([a]) => op.cast(op.square(op.cast(a, "float64")), "float32") },
  { name: "stopGradient", shapes: [[3]], f: ([a], g) => op.mul(a, stopGradient(g.constant([1, 2, 3]))) },
  { name: "sum over all", shapes: [[2, 3]], f: ([a]) => op.square(op.sum(a)) },
  { name: "sum over the middle", shapes: [[2, 3, 2]], f: ([a]) => op.square(op.sum(a, [1])) },
  { name: "sum, kept", shapes: [[2, 3]], f: ([a]) => op.mul(op.sum(a, [-1], true), a) },
  { name: "max", shapes: [[3, 4]], f: ([a]) => op.square(op.max(a, [1])) },
  { name: "max over all", shapes: [[5]], f: ([a]) => op.square(op.max(a)) },
  { name: "cumSum", shapes: [[4, 2]], f: ([a]) => op.square(op.cumSum(a, 0)) },
  { name: "cumSum reversed", shapes: [[2, 4]], f: ([a]) => op.square(op.cumSum(a, -1, true)) },
  { name: "reshape", shapes: [[2, 6]], f: ([a]) => op.square(op.reshape(a, [3, 4])) },
  { name: "transpose", shapes: [[2, 3, 2]], f: ([a]) => op.square(op.transpose(a, [2, 0, 1])) },
  { name: "expand", shapes: [[3, 1]], f: ([a]) => op.square(op.expand(a, [2, 3, 2])) },
  {
    name: "concat",
    shapes: [
      [2, 2],
      [2, 3],
    ],
    f: ([a, b]) => op.square(op.concat([a, b, a], 1)),
  },
  { name: "slice", shapes: [[2, 5]], f: ([a]) => op.square(op.slice(a, 1, 1, 4)) },
  { name: "pad", shapes: [[2, 3]], f: ([a]) => op.square(op.pad(a, 1, 2, 1)) },
  {
    name: "matmul",
    shapes: [
      [2, 3],
      [3, 4],
    ],
    f: ([a, b]) => products.matmul(a, b),
  },
  ...[0, 1, 2, 3].map((bits): GradientCase => {
    const [transA, transB] = [(bits & 1) > 0, (bits & 2) > 0];
    return {
      name: `matmul in batches, transA ${transA}, transB ${transB}, alpha`,
      shapes: [transA ? [2, 2, 3] : [2, 3, 2], transB ? [2, 4, 2] : [2, 2, 4]],
      f: ([a, b]) => products.matmul(a, b, { transA, transB, alpha: 0.7 }),
    };
  }),
  {
    name: "matmul, one matrix for all of a batch",
    shapes: [
      [2, 3, 2],
      [2, 4],
    ],
    f: ([a, b]) => products.matmul(a, b),
  },
  {
    name: "matmul, one transposed matrix for all",
    shapes: [
      [2, 3, 2],
      [4, 2],
    ],
    f: ([a, b]) => products.matmul(a, b, { transB: true, alpha: 2 }),
  },
  {
    name: "matmul, a batch of one",
    shapes: [
      [1, 3, 2],
      [4, 2, 2],
    ],
    f: ([a, b]) => products.matmul(a, b),
  },
  { name: "linear with bias", shapes: [[3, 2], [4, 2], [4]], f: ([x, w, b]) => products.linear(x, w, b) },
  { name: "affine", shapes: [[3, 2], [4, 2], [4]], f: ([x, w, b]) => affine(x, w, b) },
  {
    name: "gatherElements",
    shapes: [[3, 4]],
    f: ([a], g) => op.square(op.gatherElements(a, ints(g, [1, 0, 3], [3, 1]))),
  },
  { name: "softmax", shapes: [[2, 4]], f: ([a]) => op.softmax(a) },
  { name: "softmax over another axis", shapes: [[3, 2]], f: ([a]) => op.softmax(a, 0) },
  { name: "logSoftmax", shapes: [[2, 4]], f: ([a]) => op.logSoftmax(a) },
  {
    name: "checkpoint, of what is given and of what is captured",
    shapes: [
      [2, 3],
      [4, 3],
      [4, 3],
    ],
    f: ([x, w, unused]) => {
      const inner = ([y]: Value[]) => [op.exp(products.matmul(op.square(y), w, { transB: true })), op.mul(y, 2)];
      const [a, b] = checkpoint([x], inner);
      return [op.square(a), op.mul(b, x), unused];
    },
  },
  {
    name: "checkpoint in a checkpoint",
    shapes: [[2, 2], [2]],
    f: ([x, w]) =>
      checkpoint([x, w], ([y, v]) => checkpoint([op.exp(op.mul(y, v))], ([z]) => [op.mul(op.exp(op.mul(z, w)), y)])),
  },
  { name: "rmsNorm", shapes: [[3, 4], [4]], f: ([x, w]) => rmsNorm(x, w, 1e-5) },
  {
    name: "swiglu",
    shapes: [
      [3, 2],
      [3, 2],
    ],
    f: ([a, b]) => swiglu(a, b),
  },
  {
    name: "rotary",
    shapes: [[2, 3, 8]],
    f: ([x], g) => rotary(x, angles(g), 2),
  },
  {
    name: "rotary at given positions",
    shapes: [[2, 3, 8]],
    f: ([x], g) => rotary(x, angles(g), 2, op.cast(ints(g, [0, 1, 1, 2, 0, 2], [2, 3]), "int64")),
  },
  {
    name: "rows",
    shapes: [[4, 2]],
    f: ([x], g) => op.square(rows(x, ints(g, [2, 0]), ints(g, [1, 2, 0, 2]))),
  },
  {
    name: "embedding with repeated and absent ids",
    shapes: [[5, 2]],
    f: ([w], g) => {
      const ids = [3, 0, 3, 3, 4, 0];
      const { order, distinct, begins, ends } = embeddingPlan(Int32Array.from(ids), 5);
      const plan = {
        order: g.initializer("order", tensor(order)),
        distinct: g.initializer("distinct", tensor(distinct, [distinct.length, 1])),
        begins: g.initializer("begins", tensor(begins)),
        ends: g.initializer("ends", tensor(ends)),
      };
      return op.square(embedding(w, ints(g, ids), plan));
    },
  },
  ...([[1], [2], [4], [4, "recomputed"]] as const).map(([blocks, recomputed]): GradientCase => {
    const block = 4 / blocks;
    const recompute = recomputed !== undefined;
    return {
      name: `attention with shared key heads in ${blocks} blocks${recompute ? ", recomputed" : ""}, and in its second row two branches`,
      shapes: [
        [8, 8],
        [8, 4],
        [8, 4],
      ],
      f: ([q, k, v], g) => {
        const above = Float32Array.from({ length: block * block }, (_, i) =>
          i % block > Math.floor(i / block) ? MASKED : 0,
        );
        const triangle = g.initializer("triangle", tensor(above, [block, block]));
        const masks = branchMasks(triangle, ints(g, [0, 0, 0, 0, 0, 1, 1, 2], [2, 4]), blocks);
        const sizes = { batch: 2, heads: 4, keyValueHeads: 2, headSize: 2 };
        return attention(q, k, v, masks, { ...sizes, blocks, block, recompute });
      },
    };
  }),
];
