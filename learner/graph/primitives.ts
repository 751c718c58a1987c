/**
 * The primitive operations, each with its shape rule and its one gradient rule beside it.
 *
 * A rule gets the cotangent of the output and returns those of the inputs, in terms of primitives; `needs(i)` says whether
 * the i-th input wants one. Shapes broadcast as in numpy. A number in place of a value is a constant of the other's dtype.
 */
import { GraphError } from "./errors.ts";
import { type Attribute, type Dim, float, innermost, isFloat, type Shape, type Value } from "./graph.ts";
import { broadcast, frontAxis, product, quotient, sameShape } from "./shapes.ts";
import type { DType } from "./tensor.ts";

type Rule = (cotangent: Value, needs: (input: number) => boolean, output: Value) => (Value | undefined)[];
export type Operand = Value | number;

interface Emission {
  type: string;
  inputs: readonly Value[];
  attributes?: Record<string, Attribute>;
  shape: Shape;
  dtype?: DType;
  domain?: string;
  rule?: Rule;
}

function emit({ type, inputs, attributes = {}, shape, dtype, domain, rule }: Emission): Value {
  const graph = innermost(inputs);
  const outputs = graph.op(type, inputs, attributes, [{ dtype: dtype ?? inputs[0]!.dtype, shape }], domain);
  if (!rule) return outputs[0]!;
  const recorded = graph.record(inputs, outputs, ([cotangent]) =>
    cotangent ? rule(cotangent, (i) => inputs[i]!.requiresGrad, recorded[0]!) : inputs.map(() => undefined),
  );
  return recorded[0]!;
}

function lift(operand: Operand, like: Value): Value {
  return typeof operand === "number" ? like.graph.constant(operand, like.dtype) : operand;
}

function pair(a: Operand, b: Operand, operation: string): [Value, Value] {
  if (typeof a === "number" && typeof b === "number")
    throw new GraphError("graph", `${operation}: one operand has to be a value`);
  const left = lift(a, b as Value);
  const right = lift(b, left);
  if (left.dtype !== right.dtype)
    throw new GraphError("dtype", `${operation}: ${left.dtype} and ${right.dtype}; cast one of them`);
  return [left, right];
}

/** Sums a cotangent down to the shape of an input that was broadcast. */
export function sumTo(value: Value, shape: Shape): Value {
  if (sameShape(value.shape, shape)) return value;
  const lead = value.shape.length - shape.length;
  const axes = value.shape.flatMap((dim, i) => (i < lead || (shape[i - lead] === 1 && dim !== 1) ? [i] : []));
  const summed = axes.length > 0 ? sum(value, axes, true) : value;
  return sameShape(summed.shape, shape) ? summed : reshape(summed, shape);
}

function binary(type: string, a: Operand, b: Operand, rule: (left: Value, right: Value) => Rule): Value {
  const [left, right] = pair(a, b, type);
  return emit({
    type,
    inputs: [left, right],
    shape: broadcast([left.shape, right.shape], type),
    rule: rule(left, right),
  });
}

// ---- element-wise, two operands

export function add(a: Operand, b: Operand): Value {
  return binary("Add", a, b, (x, y) => (d, needs) => [
    needs(0) ? sumTo(d, x.shape) : undefined,
    needs(1) ? sumTo(d, y.shape) : undefined,
  ]);
}

export function sub(a: Operand, b: Operand): Value {
  return binary("Sub", a, b, (x, y) => (d, needs) => [
    needs(0) ? sumTo(d, x.shape) : undefined,
    needs(1) ? neg(sumTo(d, y.shape)) : undefined,
  ]);
}

export function mul(a: Operand, b: Operand): Value {
  return binary("Mul", a, b, (x, y) => (d, needs) => [
    needs(0) ? sumTo(mul(d, y), x.shape) : undefined,
    needs(1) ? sumTo(mul(d, x), y.shape) : undefined,
  ]);
}

export function div(a: Operand, b: Operand): Value {
  return binary("Div", a, b, (x, y) => (d, needs, out) => [
    needs(0) ? sumTo(div(d, y), x.shape) : undefined,
    needs(1) ? neg(sumTo(div(mul(d, out), y), y.shape)) : undefined,
  ]);
}

/** x to a constant power. */
export function pow(x: Value, exponent: number): Value {
  return emit({
    type: "Pow",
    inputs: [x, lift(exponent, x)],
    shape: x.shape,
    rule: (d) => [mul(d, mul(pow(x, exponent - 1), exponent)), undefined],
  });
}

/** The larger one; where both are equal the whole gradient goes to `a`. */
export function maximum(a: Operand, b: Operand): Value {
  return binary("Max", a, b, (x, y) => (d, needs) => chosen(d, needs, greaterOrEqual(x, y), x, y));
}

/** The smaller one; where both are equal the whole gradient goes to `a`. */
export function minimum(a: Operand, b: Operand): Value {
  return binary("Min", a, b, (x, y) => (d, needs) => chosen(d, needs, lessOrEqual(x, y), x, y));
}

function chosen(d: Value, needs: (input: number) => boolean, first: Value, x: Value, y: Value): (Value | undefined)[] {
  return [
    needs(0) ? sumTo(where(first, d, 0), x.shape) : undefined,
    needs(1) ? sumTo(where(first, lift(0, d), d), y.shape) : undefined,
  ];
}

/** `condition ? a : b` */
export function where(condition: Value, a: Operand, b: Operand): Value {
  const [x, y] = pair(a, b, "Where");
  return emit({
    type: "Where",
    inputs: [condition, x, y],
    dtype: x.dtype,
    shape: broadcast([condition.shape, x.shape, y.shape], "Where"),
    rule: (d, needs) => [
      undefined,
      needs(1) ? sumTo(where(condition, d, 0), x.shape) : undefined,
      needs(2) ? sumTo(where(condition, lift(0, d), d), y.shape) : undefined,
    ],
  });
}

function comparison(type: string, a: Operand, b: Operand): Value {
  const [x, y] = pair(a, b, type);
  return emit({ type, inputs: [x, y], dtype: "bool", shape: broadcast([x.shape, y.shape], type) });
}
export const greater = (a: Operand, b: Operand): Value => comparison("Greater", a, b);
export const greaterOrEqual = (a: Operand, b: Operand): Value => comparison("GreaterOrEqual", a, b);
export const less = (a: Operand, b: Operand): Value => comparison("Less", a, b);
export const lessOrEqual = (a: Operand, b: Operand): Value => comparison("LessOrEqual", a, b);
export const equal = (a: Operand, b: Operand): Value => comparison("Equal", a, b);
export const and = (a: Value, b: Value): Value => comparison("And", a, b);
export const or = (a: Value, b: Value): Value => comparison("Or", a, b);
export const not = (x: Value): Value => emit({ type: "Not", inputs: [x], shape: x.shape });

// ---- element-wise, one operand

function unary(type: string, x: Value, rule: Rule): Value {
  return emit({ type, inputs: [x], shape: x.shape, rule });
}

export const neg = (x: Value): Value => unary("Neg", x, (d) => [neg(d)]);
export const exp = (x: Value): Value => unary("Exp", x, (d, _, y) => [mul(d, y)]);
export const log = (x: Value): Value => unary("Log", x, (d) => [div(d, x)]);
export const sqrt = (x: Value): Value => unary("Sqrt", x, (d, _, y) => [div(mul(d, 0.5), y)]);
export const reciprocal = (x: Value): Value => unary("Reciprocal", x, (d, _, y) => [neg(mul(d, square(y)))]);
export const tanh = (x: Value): Value => unary("Tanh", x, (d, _, y) => [mul(d, sub(1, square(y)))]);
export const sigmoid = (x: Value): Value => unary("Sigmoid", x, (d, _, y) => [mul(d, mul(y, sub(1, y)))]);
export const abs = (x: Value): Value => unary("Abs", x, (d) => [mul(d, sign(x))]);
export const sign = (x: Value): Value => emit({ type: "Sign", inputs: [x], shape: x.shape });
export const square = (x: Value): Value => mul(x, x);
export const sin = (x: Value): Value => unary("Sin", x, (d) => [mul(d, cos(x))]);
export const cos = (x: Value): Value => unary("Cos", x, (d) => [neg(mul(d, sin(x)))]);

/** x * sigmoid(x), as one kernel (QuickGelu with alpha 1). */
export function silu(x: Value): Value {
  return emit({
    type: "QuickGelu",
    domain: "com.microsoft",
    inputs: [x],
    attributes: { alpha: float(1) },
    shape: x.shape,
    rule: (d, _, y) => {
      const s = sigmoid(x); // silu' = s + y (1 - s)
      return [mul(d, add(s, sub(y, mul(y, s))))];
    },
  });
}

/** min(max(x, low), high); the gradient is zero outside and passes at the borders. */
export function clip(x: Value, low: Operand, high: Operand): Value {
  const inputs = [x, lift(low, x), lift(high, x)];
  return emit({
    type: "Clip",
    inputs,
    shape: x.shape,
    rule: (d) => [where(and(greaterOrEqual(x, inputs[1]!), lessOrEqual(x, inputs[2]!)), d, 0), undefined, undefined],
  });
}

export function cast(x: Value, dtype: DType): Value {
  if (x.dtype === dtype) return x;
  const rule: Rule | undefined = isFloat(x.dtype) && isFloat(dtype) ? (d) => [cast(d, x.dtype)] : undefined;
  return emit({ type: "Cast", inputs: [x], attributes: { to: dtypeCode(dtype) }, dtype, shape: x.shape, rule });
}

function dtypeCode(dtype: DType): number {
  return { float32: 1, uint8: 2, int32: 6, int64: 7, bool: 9, float16: 10, float64: 11, bfloat16: 16 }[dtype];
}

/** The same numbers, with no gradient. */
export function stopGradient(x: Value): Value {
  return { ...x, requiresGrad: false };
}

// ---- reductions

function reducedShape(x: Value, axes: readonly number[], keepDims: boolean): Dim[] {
  return x.shape.flatMap((dim, i) => (axes.includes(i) ? (keepDims ? [1] : []) : [dim]));
}

function reduce(
  type: string,
  x: Value,
  axes: readonly number[] | undefined,
  keepDims: boolean,
  rule?: (kept: Shape) => Rule,
): Value {
  const list = (axes ?? x.shape.map((_, i) => i)).map((axis) => frontAxis(axis, x.shape.length, type));
  const kept = reducedShape(x, list, true);
  return emit({
    type,
    inputs: [x, x.graph.constant(list, "int64")],
    attributes: { keepdims: keepDims },
    shape: reducedShape(x, list, keepDims),
    rule: rule?.(kept),
  });
}

/** Sum over `axes` (all when left out). */
export function sum(x: Value, axes?: readonly number[], keepDims = false): Value {
  return reduce("ReduceSum", x, axes, keepDims, (kept) => (d) => [expand(reshape(d, kept), x.shape), undefined]);
}

export function mean(x: Value, axes?: readonly number[], keepDims = false): Value {
  const count = product(
    (axes ?? x.shape.map((_, i) => i)).map((axis) => x.shape[frontAxis(axis, x.shape.length, "mean")]!),
  );
  if (typeof count === "number") return mul(sum(x, axes, keepDims), 1 / count);
  return div(sum(x, axes, keepDims), cast(reshape(x.graph.dim(count), []), x.dtype));
}

/** Largest entry; equal entries share the gradient. */
export function max(x: Value, axes?: readonly number[], keepDims = false): Value {
  return reduce("ReduceMax", x, axes, keepDims, (kept) => (d, _, y) => {
    const hit = cast(equal(x, reshape(y, kept)), x.dtype);
    const list = (axes ?? x.shape.map((__, i) => i)).map((axis) => frontAxis(axis, x.shape.length, "max"));
    return [mul(div(hit, sum(hit, list, true)), reshape(d, kept)), undefined];
  });
}

/** Index of the largest entry, int64. */
export function argMax(x: Value, axis: number, keepDims = false): Value {
  const front = frontAxis(axis, x.shape.length, "ArgMax");
  return emit({
    type: "ArgMax",
    inputs: [x],
    attributes: { axis: front, keepdims: keepDims },
    dtype: "int64",
    shape: reducedShape(x, [front], keepDims),
  });
}

/** Running sum along an axis, inclusive; `reverse` runs from the end. */
export function cumSum(x: Value, axis: number, reverse = false): Value {
  const front = frontAxis(axis, x.shape.length, "CumSum");
  return emit({
    type: "CumSum",
    inputs: [x, x.graph.constant(front, "int64")],
    attributes: { reverse },
    shape: x.shape,
    rule: (d) => [cumSum(d, front, !reverse), undefined],
  });
}

// ---- layout

/** `-1` for one dim means: what is left. */
export function reshape(x: Value, shape: Shape): Value {
  let target = shape;
  const open = shape.indexOf(-1);
  if (open >= 0) {
    const rest = quotient(product(x.shape), product(shape.filter((_, i) => i !== open)));
    if (rest === undefined) throw new GraphError("shape", `reshape: [${x.shape}] does not divide into [${shape}]`);
    target = shape.map((dim, i) => (i === open ? rest : dim));
  }
  if (product(x.shape) !== product(target))
    throw new GraphError("shape", `reshape: [${x.shape}] has other elements than [${target}]`);
  if (sameShape(x.shape, target)) return x;
  const named = target.filter((dim) => typeof dim === "string").length;
  // one named dim needs no shape at run time: -1 stands for it
  const asConstant = named <= 1 && !target.includes(0);
  const wanted = asConstant
    ? x.graph.constant(
        target.map((dim) => (typeof dim === "number" ? dim : -1)),
        "int64",
      )
    : x.graph.shapeOf(target);
  return emit({ type: "Reshape", inputs: [x, wanted], shape: target, rule: (d) => [reshape(d, x.shape), undefined] });
}

export function transpose(x: Value, permutation: readonly number[]): Value {
  const inverse = permutation.map((_, i) => permutation.indexOf(i));
  if (permutation.length !== x.shape.length || inverse.includes(-1)) {
    throw new GraphError("shape", `transpose: [${permutation}] is no permutation of the axes of [${x.shape}]`);
  }
  return emit({
    type: "Transpose",
    inputs: [x],
    attributes: { perm: [...permutation] },
    shape: permutation.map((axis) => x.shape[axis]!),
    rule: (d) => [transpose(d, inverse)],
  });
}

/** Broadcasts to `shape`. */
export function expand(x: Value, shape: Shape): Value {
  if (sameShape(x.shape, shape)) return x;
  const result = broadcast([x.shape, shape], "Expand");
  return emit({
    type: "Expand",
    inputs: [x, x.graph.shapeOf(shape)],
    shape: result,
    rule: (d) => [sumTo(d, x.shape), undefined],
  });
}

export function concat(values: readonly Value[], axis: number): Value {
  const first = values[0]!;
  const front = frontAxis(axis, first.shape.length, "Concat");
  const dims = values.map((value) => value.shape[front]!);
  const total = dims.every((dim) => typeof dim === "number") ? dims.reduce((a, b) => a + b, 0) : dims.join("+");
  return emit({
    type: "Concat",
    inputs: values,
    attributes: { axis: front },
    shape: first.shape.map((dim, i) => (i === front ? total : dim)),
    rule: (d, needs) => {
      let start = 0;
      return values.map((value, i) => {
        const size = value.shape[front]!;
        if (typeof size !== "number")
          throw new GraphError("gradient", `concat: the axis has the named dim '${size}'; its gradient needs numbers`);
        start += size;
        return needs(i) ? slice(d, front, start - size, start) : undefined;
      });
    },
  });
}

/** Entries start..end-1 of an axis. */
export function slice(x: Value, axis: number, start: number, end: number): Value {
  const front = frontAxis(axis, x.shape.length, "Slice");
  const size = x.shape[front]!;
  if (start < 0 || end < start || (typeof size === "number" && end > size)) {
    throw new GraphError("shape", `slice: ${start}..${end} of axis ${axis} of [${x.shape}]`);
  }
  return emit({
    type: "Slice",
    inputs: [x, ...[start, end, front].map((n) => x.graph.constant([n], "int64"))],
    shape: x.shape.map((dim, i) => (i === front ? end - start : dim)),
    rule: (d) => {
      if (typeof size !== "number")
        throw new GraphError("gradient", `slice: the axis has the named dim '${size}'; its gradient needs a number`);
      return [pad(d, front, start, size - end), undefined, undefined, undefined];
    },
  });
}

/** Zeros before and after along an axis. */
export function pad(x: Value, axis: number, before: number, after: number): Value {
  const front = frontAxis(axis, x.shape.length, "Pad");
  const size = x.shape[front]!;
  const amounts = x.shape
    .map((_, i) => (i === front ? before : 0))
    .concat(x.shape.map((_, i) => (i === front ? after : 0)));
  return emit({
    type: "Pad",
    inputs: [x, x.graph.constant(amounts, "int64")],
    shape: x.shape.map((dim, i) =>
      i !== front ? dim : typeof size === "number" ? size + before + after : `${size}+${before + after}`,
    ),
    rule: (d) => {
      if (typeof size !== "number")
        throw new GraphError("gradient", `pad: the axis has the named dim '${size}'; its gradient needs a number`);
      return [slice(d, front, before, before + size), undefined];
    },
  });
}

/** Equal pieces along an axis. */
export function split(x: Value, axis: number, sizes: readonly number[]): Value[] {
  const front = frontAxis(axis, x.shape.length, "Split");
  const graph = innermost([x]);
  const outputs = graph.op(
    "Split",
    [x, graph.constant(sizes, "int64")],
    { axis: front },
    sizes.map((size) => ({ dtype: x.dtype, shape: x.shape.map((dim, i) => (i === front ? size : dim)) })),
  );
  return graph.record([x], outputs, (cotangents) => [
    concat(
      cotangents.map((d, i) => d ?? expand(graph.constant(0, x.dtype), outputs[i]!.shape)),
      front,
    ),
  ]);
}

// ---- products

export interface MatMulOptions {
  transA?: boolean;
  transB?: boolean;
  /** the product is multiplied by this */
  alpha?: number;
}

/** alpha * A B over the last two axes, earlier axes broadcast; either operand may be read transposed. */
export function matmul(a: Value, b: Value, { transA = false, transB = false, alpha = 1 }: MatMulOptions = {}): Value {
  const [aShape, bShape] = [a.shape, b.shape];
  if (aShape.length < 2 || bShape.length < 2)
    throw new GraphError("shape", `matmul: [${aShape}] and [${bShape}] need two axes at least`);
  const rows = aShape.at(transA ? -1 : -2)!;
  const columns = bShape.at(transB ? -2 : -1)!;
  if (aShape.at(transA ? -2 : -1) !== bShape.at(transB ? -1 : -2)) {
    throw new GraphError(
      "shape",
      `matmul: the inner dims of [${aShape}]${transA ? "^T" : ""} and [${bShape}]${transB ? "^T" : ""} differ`,
    );
  }
  const batch = broadcast(
    [aShape.slice(0, -2), bShape.slice(0, -2)].map((s) => (s.length > 0 ? s : [1])),
    "matmul",
  );
  const lead = Math.max(aShape.length, bShape.length) === 2 ? [] : batch;
  const plain = !transA && !transB && alpha === 1;
  return emit({
    type: plain ? "MatMul" : "FusedMatMul",
    domain: plain ? "" : "com.microsoft",
    inputs: [a, b],
    attributes: plain ? {} : { transA, transB, alpha: float(alpha) },
    shape: [...lead, rows, columns],
    rule: (d, needs) => [
      needs(0)
        ? sumTo(
            transA ? matmul(b, d, { transA: transB, transB: true, alpha }) : matmul(d, b, { transB: !transB, alpha }),
            aShape,
          )
        : undefined,
      needs(1) ? weightCotangent(a, d, b, { transA, transB, alpha }) : undefined,
    ],
  });
}

function weightCotangent(a: Value, d: Value, b: Value, { transA, transB, alpha }: Required<MatMulOptions>): Value {
  if (b.shape.length === 2 && a.shape.length > 2 && !transA) {
    // one tall product instead of one per batch entry and a sum
    const rows = reshape(a, [-1, a.shape.at(-1)!]);
    const cotangents = reshape(d, [-1, d.shape.at(-1)!]);
    return transB
      ? matmul(cotangents, rows, { transA: true, alpha })
      : matmul(rows, cotangents, { transA: true, alpha });
  }
  return sumTo(
    transB ? matmul(d, a, { transA: true, transB: transA, alpha }) : matmul(a, d, { transA: !transA, alpha }),
    b.shape,
  );
}

/** x W^T (+ bias) with W in Hugging Face layout [out, in]; x [..., in]. */
export function linear(x: Value, weight: Value, bias?: Value): Value {
  const y = matmul(x, weight, { transB: true });
  return bias ? add(y, bias) : y;
}

// ---- indexing

/** Entries of axis 0: x[indices]. Differentiable in `x` through `rows` and `embedding` (composites.ts) only. */
export function gather(x: Value, indices: Value, axis = 0): Value {
  if (x.requiresGrad && x.graph.model.recording) {
    throw new GraphError(
      "gradient",
      "gather has no gradient (adding at duplicate indices races in ONNX Runtime); use rows() or embedding()",
    );
  }
  const front = frontAxis(axis, x.shape.length, "Gather");
  return emit({
    type: "Gather",
    inputs: [x, indices],
    attributes: { axis: front },
    shape: [...x.shape.slice(0, front), ...indices.shape, ...x.shape.slice(front + 1)],
  });
}

/** x[..., indices[..., j]] along the last axis; `indices` int32 or int64 of x's rank. Its gradient adds nothing twice when a row's indices are distinct. */
export function gatherElements(x: Value, indices: Value): Value {
  const axis = x.shape.length - 1;
  const width = indices.shape.at(-1);
  return emit({
    type: "GatherElements",
    inputs: [x, indices],
    attributes: { axis },
    shape: indices.shape,
    rule: (d) => {
      if (width !== 1)
        throw new GraphError("gradient", `gatherElements: its gradient takes one index per row, not ${width}`);
      const zeros = expand(x.graph.constant(0, x.dtype), x.shape);
      return [scatterElements(zeros, indices, d), undefined];
    },
  });
}

/** A copy of x with x[..., indices[..., j]] = updates; indices of a row are distinct. No gradient. */
export function scatterElements(x: Value, indices: Value, updates: Value): Value {
  return emit({
    type: "ScatterElements",
    inputs: [x, indices, updates],
    attributes: { axis: x.shape.length - 1 },
    shape: x.shape,
  });
}

// ---- normalisation

export function softmax(x: Value, axis = -1): Value {
  const front = frontAxis(axis, x.shape.length, "Softmax");
  return emit({
    type: "Softmax",
    inputs: [x],
    attributes: { axis: front },
    shape: x.shape,
    rule: (d, _, y) => {
      const weighted = mul(d, y);
      return [sub(weighted, mul(y, sum(weighted, [front], true)))];
    },
  });
}

export function logSoftmax(x: Value, axis = -1): Value {
  const front = frontAxis(axis, x.shape.length, "LogSoftmax");
  return emit({
    type: "LogSoftmax",
    inputs: [x],
    attributes: { axis: front },
    shape: x.shape,
    rule: (d, _, y) => [sub(d, mul(exp(y), sum(d, [front], true)))],
  });
}
