/** Operations of transformers, composed of primitives. Some have hand-written gradients, which pass over memory less often. */
import { custom } from "./emit.ts";
import { fusedEmbeddingGradient, fusedNorm, fusedRotary, fusedSwiglu, fuses, fusesEmbedding } from "./fused.ts";
import { type Dim, float, type OutputSpec, type Value } from "./graph.ts";
import { isAligned, normKernels, rotaryKernel } from "./operators.ts";
import {
  add,
  addable,
  cast,
  cumSum,
  expand,
  gather,
  mul,
  pad,
  reshape,
  sigmoid,
  silu,
  sub,
  sum,
  sumTo,
} from "./primitives.ts";
import { half, type LinearOutput, matmul, narrows } from "./products.ts";
import { product } from "./shapes.ts";

/** x / rms(x) * weight over the last axis; x float32 [rows, size], weight [size]. */
export function rmsNorm(x: Value, weight: Value, epsilon: number): Value {
  const [rows, size] = x.shape as [Dim, number];
  const graph = x.graph;
  let inverse: Value; // 1 / rms, [rows, 1]
  const [output] = custom(
    "rmsNorm",
    [x, weight],
    ([input, scale]) => {
      const attributes = { axis: -1, epsilon: float(epsilon), stash_type: 1 };
      const outputs: OutputSpec[] = [x, { dtype: "float32", shape: [rows, 1] }];
      const [y, second] = graph.op("SimplifiedLayerNormalization", [input, scale], attributes, outputs);
      inverse = second;
      return [y];
    },
    ([d]) => {
      const normed = mul(x, inverse);
      const dNormed = mul(d!, normed);
      // mean(d * weight * normed) over a row, as a matrix-vector product
      const projection = matmul(dNormed, reshape(weight, [size, 1]), { alpha: 1 / size, precise: true });
      const dx = x.requiresGrad ? mul(sub(mul(d!, weight), mul(normed, projection)), inverse) : undefined;
      return [dx, weight.requiresGrad ? sum(dNormed, [0]) : undefined];
    },
  );
  return output;
}

/** The residual stream between two norms: one value, or a float32 value and a bfloat16 product that the next norm adds to it. */
export type Stream = readonly Value[];

const fusesNorm = (x: Value): boolean => {
  const kernels = normKernels(x.shape[1]!);
  return fuses(x, kernels?.forward, kernels?.backward);
};

/** The stream x, float32 [rows, size], with a layer's output. */
export function plusOutput(x: Value, output: LinearOutput): Stream {
  return fusesNorm(x) ? [x, output.bias ? output.narrow() : output.product()] : [add(x, output.wide())];
}

/** Returns the sum of a stream, float32, and its `rmsNorm`: bfloat16 from a kernel, else float32. */
export function normOf([x, added]: Stream, weight: Value, epsilon: number): [total: Value, normed: Value] {
  return fusesNorm(x!) ? fusedNorm(x!, added, weight, epsilon) : [x!, rmsNorm(x!, weight, epsilon)];
}

/**
 * silu(gate) * up. Silu and its slope are computed in float32 even when the inputs are bfloat16: CUDA's kernels round every step to the
 * dtype, which costs sigmoid(-3) = 1 - 1 / (1 + e^-3) a tenth of its value.
 */
export function swiglu(gate: Value, up: Value): Value {
  if (isAligned(gate.shape[1]!) && fuses(gate, "swiglu_forward", "swiglu_backward")) return fusedSwiglu(gate, up);
  let activated: Value;
  const wide = (x: Value) => cast(x, "float32");
  const [output] = custom(
    "swiglu",
    [gate, up],
    ([g, u]) => {
      activated = cast(silu(wide(g!)), g!.dtype);
      return [mul(activated, u!)];
    },
    ([d]) => {
      const s = sigmoid(wide(gate));
      const a = gate.dtype === "float32" ? activated : mul(wide(gate), s);
      const slope = cast(add(s, sub(a, mul(a, s))), gate.dtype);
      return [mul(mul(d!, up), slope), mul(d!, activated)];
    },
  );
  return output!;
}

/** Cosines and sines of the angles of each position, float32 [time, headSize / 2]. */
export interface RotaryValues {
  cos: Value;
  sin: Value;
  negativeSin: Value;
}

/**
 * Rotary positions in the half-split layout of Hugging Face: x [batch, time, heads * headSize] or [batch, heads, time, headSize],
 * cos and sin [time, headSize / 2], which give the dtype of the computation. `positions`, int64 [batch, time], below time; by default 0, 1, 2, ... The gradient is the
 * rotation by the opposite angle.
 */
export function rotary(x: Value, table: RotaryValues, heads: number, positions?: Value): Value {
  const { cos, sin, negativeSin } = table;
  const { graph } = x;
  const rotate = (value: Value, s: Value) =>
    graph.op(
      "RotaryEmbedding",
      [value, positions ?? graph.constant([0], "int64"), cos, s],
      value.shape.length === 3 ? { num_heads: heads, rotary_embedding_dim: 0 } : {},
      [{ dtype: value.dtype, shape: value.shape }],
      "com.microsoft",
    )[0];
  return custom(
    "rotary",
    [x],
    ([input]) => [cast(rotate(cast(input!, cos.dtype), sin), x.dtype)],
    ([d]) => [cast(rotate(cast(d!, cos.dtype), negativeSin), x.dtype)],
  )[0];
}

/** Where the tokens of queries and keys stand. */
export interface RotaryShape {
  batch: Dim;
  time: Dim;
  heads: number;
  /** int64 [batch, time] */
  positions: Value;
}

/**
 * Queries or keys of a linear layer, turned by `rotary`: [batch*time, heads*headSize]. @param norm of each head before, [rows*heads, headSize]
 */
export function turned(
  output: LinearOutput,
  table: RotaryValues,
  { batch, time, heads, positions }: RotaryShape,
  norm?: (heads: Value) => Value,
): Value {
  const headSize = 2 * (table.cos.shape[1] as number);
  const width = heads * headSize;
  const rowCount = product([batch, time]);
  const fused = fuses(table.cos, rotaryKernel(headSize));
  const place = { table, positions, heads };
  if (fused && !norm) return fusedRotary(output.product(), { ...place, bias: output.bias });
  const whole = output.wide();
  const each = product([rowCount, heads]);
  const x = norm ? reshape(norm(reshape(whole, [each, headSize])), [rowCount, width]) : whole;
  if (fused) return fusedRotary(half(x), { ...place, bias: undefined });
  return reshape(rotary(reshape(x, [batch, time, width]), table, heads, positions), [rowCount, width]);
}

/**
 * x[indices] along axis 0 with distinct indices. `inverse` says for each row of x which row of the result took it, or the
 * number of result rows where none did, so that the gradient is a gather too (a scatter that adds races in ONNX Runtime).
 */
export function rows(x: Value, indices: Value, inverse: Value): Value {
  return custom(
    "rows",
    [x],
    ([input]) => [gather(input, indices)],
    ([d]) => [cast(gather(pad(cast(d!, "float32"), 0, 0, 1), inverse), x.dtype)], // CUDA pads no bfloat16
  )[0];
}

/** The plan by which the rows of an embedding's gradient are summed without adding twice to one place (`embeddingPlan`). */
export interface EmbeddingPlan {
  /**
   * positions in `ids`, sorted by id, int32 [positions], or [groups, each]: the running sum then goes in two levels, over the rows of a
   * group and over groups. CUDA's CumSum is quadratic, because it begins each sum anew
   */
  order: Value;
  /** the distinct ids, ascending, int32 [distinct, 1] */
  distinct: Value;
  /** begin and end of each distinct id's run in `order`, int32 [distinct] */
  begins: Value;
  ends: Value;
}

/** weight[ids]; weight [vocabulary, size], ids int32 [positions]. */
export function embedding(weight: Value, ids: Value, plan: EmbeddingPlan): Value {
  return custom(
    "embedding",
    [weight],
    ([table]) => [gather(table, ids)],
    ([d]) => {
      const addedTo = fusesEmbedding(weight)
        ? (total: Value) => fusedEmbeddingGradient(total, d!, plan)
        : addedRows(weight, d!, plan);
      return [addable(addedTo(expand(weight.graph.constant(0, weight.dtype), weight.shape)), addedTo)];
    },
  )[0];
}

/** Adds the gradient of an embedding to a total by running sums over the sorted rows in float64: a run's sum is the difference at its ends. */
function addedRows(weight: Value, d: Value, plan: EmbeddingPlan): (total: Value) => Value {
  const sorted = cast(gather(d, plan.order), "float64");
  const running = pad(runningSums(sorted), 0, 1, 0);
  const sums = cast(sub(gather(running, plan.ends), gather(running, plan.begins)), weight.dtype);
  const places = cast(plan.distinct, "int64");
  return (total) => total.graph.op("ScatterND", [total, places, sums], { reduction: "add" }, [weight])[0];
}

/** Running sums over rows, [rows, size]. The input is [rows, size], or [groups, each, size], which is summed in two levels. */
function runningSums(x: Value): Value {
  if (x.shape.length === 2) return cumSum(x, 0);
  const totals = sum(x, [1], true);
  const before = sub(cumSum(totals, 0), totals);
  return reshape(add(cumSum(x, 1), before), [product(x.shape.slice(0, 2)), x.shape[2]]);
}

/** Counting sort of `ids` (all below `vocabulary`) for the gradient of `embedding`. */
export function embeddingPlan(ids: Int32Array, vocabulary: number) {
  const starts = new Int32Array(vocabulary + 1);
  for (const id of ids) starts[id + 1]++;
  for (let id = 0; id < vocabulary; id++) starts[id + 1] += starts[id];
  const distinct = Int32Array.from(new Set(ids)).sort();
  const [begins, ends] = [distinct.map((id) => starts[id]), distinct.map((id) => starts[id + 1])];
  const order = new Int32Array(ids.length);
  for (const [position, id] of ids.entries()) order[starts[id]++] = position; // the next place of each id
  return { order, distinct, begins, ends };
}

/** x W^T + bias as one kernel, with one rounding; x [rows, in], weight [out, in], bias [out] or [rows, out]. */
export function affine(x: Value, weight: Value, bias: Value): Value {
  const graph = x.graph;
  const [a, w, b] = narrows({ graph }) ? [half(x), half(weight), half(bias)] : [x, weight, bias];
  return custom(
    "affine",
    [a, w, b],
    (operands) => graph.op("Gemm", operands, { transB: 1 }, [{ dtype: a.dtype, shape: [x.shape[0], weight.shape[0]] }]),
    ([d]) => [
      a.requiresGrad ? matmul(d!, w) : undefined,
      w.requiresGrad ? matmul(d!, a, { transA: true }) : undefined,
      b.requiresGrad ? sumTo(d!, b.shape) : undefined,
    ],
  )[0];
}
