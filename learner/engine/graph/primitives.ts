/**
 * The primitive operations. Each has its shape rule and its one gradient rule beside it; README.md has the rules as a table. Shapes
 * broadcast as in numpy.
 */
import { emit, lift, type Operand, pair, type Rule, unary } from "./emit.ts";
import { GraphError } from "./errors.ts";
import { type Dim, float, isFloat, type Shape, type Value } from "./graph.ts";
import { broadcast, frontAxis, product, sameShape } from "./shapes.ts";
import { DTYPES, type DType } from "./tensor.ts";

// ---- element by element

/** @param cotangents of the operands, before they are summed down to the shape of an operand that was broadcast */
function binary(
  type: string,
  a: Operand,
  b: Operand,
  cotangents: (d: Value, x: Value, y: Value, output: Value) => [left: () => Value, right: () => Value],
): Value {
  const inputs = pair(a, b, type);
  const [x, y] = inputs;
  return emit({
    type,
    inputs,
    shape: broadcast([x.shape, y.shape], type),
    rule: (d, needs, output) =>
      cotangents(d, x, y, output).map((of, i) => (needs(i) ? sumTo(of(), inputs[i].shape) : undefined)),
  });
}

export const add = (a: Operand, b: Operand): Value => binary("Add", a, b, (d) => [() => d, () => d]);
export const sub = (a: Operand, b: Operand): Value =>
  binary("Sub", a, b, (d, _, y) => [() => d, () => neg(sumTo(d, y.shape))]);
export const mul = (a: Operand, b: Operand): Value =>
  binary("Mul", a, b, (d, x, y) => [() => mul(d, y), () => mul(d, x)]);
export const div = (a: Operand, b: Operand): Value =>
  binary("Div", a, b, (d, _, y, out) => [() => div(d, y), () => neg(sumTo(div(mul(d, out), y), y.shape))]);

/** The larger one; where both are equal the whole gradient goes to `a`. */
export const maximum = (a: Operand, b: Operand): Value => chosen("Max", a, b, greaterOrEqual);
/** The smaller one; where both are equal the whole gradient goes to `a`. */
export const minimum = (a: Operand, b: Operand): Value => chosen("Min", a, b, lessOrEqual);

function chosen(type: string, a: Operand, b: Operand, takesFirst: (x: Value, y: Value) => Value): Value {
  return binary(type, a, b, (d, x, y) => {
    const first = takesFirst(x, y);
    return [() => where(first, d, 0), () => where(first, lift(0, d), d)];
  });
}

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
export const greaterOrEqual = (a: Operand, b: Operand): Value => comparison("GreaterOrEqual", a, b);
export const less = (a: Operand, b: Operand): Value => comparison("Less", a, b);
export const lessOrEqual = (a: Operand, b: Operand): Value => comparison("LessOrEqual", a, b);
export const equal = (a: Operand, b: Operand): Value => comparison("Equal", a, b);
export const and = (a: Value, b: Value): Value => comparison("And", a, b);
export const or = (a: Value, b: Value): Value => comparison("Or", a, b);

export const neg = (x: Value): Value => unary("Neg", x, (d) => [neg(d)]);
export const exp = (x: Value): Value => unary("Exp", x, (d, _, y) => [mul(d, y)]);
export const log = (x: Value): Value => unary("Log", x, (d) => [div(d, x)]);
export const sqrt = (x: Value): Value => unary("Sqrt", x, (d, _, y) => [div(mul(d, 0.5), y)]);
export const sigmoid = (x: Value): Value => unary("Sigmoid", x, (d, _, y) => [mul(d, mul(y, sub(1, y)))]);
export const square = (x: Value): Value => mul(x, x);

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
    rule: (d) => [where(and(greaterOrEqual(x, inputs[1]), lessOrEqual(x, inputs[2])), d, 0), undefined, undefined],
  });
}

export function cast(x: Value, dtype: DType): Value {
  if (x.dtype === dtype) return x;
  const { castFrom } = x.graph.model;
  const source = castFrom.get(x.name);
  if (source?.dtype === dtype && !x.requiresGrad) return source;
  const rule: Rule | undefined = isFloat(x.dtype) && isFloat(dtype) ? (d) => [cast(d, x.dtype)] : undefined;
  const attributes = { to: DTYPES[dtype].code };
  const result = emit({ type: "Cast", inputs: [x], attributes, dtype, shape: x.shape, rule });
  if (dtype === "float32" && (x.dtype === "bfloat16" || x.dtype === "float16")) castFrom.set(result.name, x);
  return result;
}

// ---- sums that a kernel makes by itself: a product adds to a matrix (Gemm), rows are added to some of a table's (ScatterND)

/** `value` can be computed added to a total of its shape, without being there by itself. @returns value */
export function addable(value: Value, addedTo: (total: Value) => Value): Value {
  value.graph.model.addedTo.set(value.name, addedTo);
  return value;
}

/** a + b, of the same shape. A value that is used in this sum alone is not computed by itself then. */
export function plus(a: Value, b: Value): Value {
  const { addedTo } = a.graph.model;
  const [total, part] = addedTo.has(b.name) ? [a, addedTo.get(b.name)] : [b, addedTo.get(a.name)];
  if (!part) return add(a, b);
  const sum = part(total);
  return addedTo.has(total.name) ? addable(sum, (more) => part(plus(more, total))) : sum;
}

// ---- other shapes of the same numbers, repetition and sums along axes: each is in the gradient of another

export function reshape(x: Value, target: Shape): Value {
  if (product(x.shape) !== product(target))
    throw new GraphError("shape", `reshape: [${x.shape}] has other elements than [${target}]`);
  if (sameShape(x.shape, target)) return x;
  const named = target.filter((dim) => typeof dim === "string").length;
  // one named dim needs no shape at run time: -1 stands for it
  const asConstant = named <= 1 && !target.includes(0);
  const sizes = target.map((dim) => (typeof dim === "number" ? dim : -1));
  const wanted = asConstant ? x.graph.constant(sizes, "int64") : x.graph.shapeOf(target);
  return emit({ type: "Reshape", inputs: [x, wanted], shape: target, rule: (d) => [reshape(d, x.shape), undefined] });
}

export function expand(x: Value, shape: Shape): Value {
  if (sameShape(x.shape, shape)) return x;
  return emit({
    type: "Expand",
    inputs: [x, x.graph.shapeOf(shape)],
    shape: broadcast([x.shape, shape], "Expand"),
    rule: (d) => [sumTo(d, x.shape), undefined],
  });
}

/** An operator that reduces over `axes` (all when left out). */
function reduce(
  type: string,
  x: Value,
  axes: readonly number[] | undefined,
  keepDims: boolean,
  rule: (kept: Shape, axes: readonly number[]) => Rule,
): Value {
  const list = (axes ?? x.shape.map((_, i) => i)).map((axis) => frontAxis(axis, x.shape.length, type));
  const kept = x.shape.map((dim, i) => (list.includes(i) ? 1 : dim));
  return emit({
    type,
    inputs: [x, x.graph.constant(list, "int64")],
    attributes: { keepdims: keepDims },
    shape: keepDims ? kept : x.shape.filter((_, i) => !list.includes(i)),
    rule: rule(kept, list),
  });
}

export function sum(x: Value, axes?: readonly number[], keepDims = false): Value {
  return reduce("ReduceSum", x, axes, keepDims, (kept) => (d) => [expand(reshape(d, kept), x.shape), undefined]);
}

/** Sums a cotangent down to the shape of an input that was broadcast. */
export function sumTo(value: Value, shape: Shape): Value {
  if (sameShape(value.shape, shape)) return value;
  const lead = value.shape.length - shape.length;
  const axes = value.shape.flatMap((dim, i) => (i < lead || (shape[i - lead] === 1 && dim !== 1) ? [i] : []));
  const summed = axes.length > 0 ? sum(value, axes, true) : value;
  return sameShape(summed.shape, shape) ? summed : reshape(summed, shape);
}

// ---- the largest entry, running sums and softmax along axes

/** Largest entry; equal entries share the gradient. */
export function max(x: Value, axes?: readonly number[], keepDims = false): Value {
  return reduce("ReduceMax", x, axes, keepDims, (kept, list) => (d, _, y) => {
    const hit = cast(equal(x, reshape(y, kept)), x.dtype);
    return [mul(div(hit, sum(hit, list, true)), reshape(d, kept)), undefined];
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

export const softmax = (x: Value, axis = -1): Value =>
  normalised("Softmax", x, axis, (d, y, front) => {
    const weighted = mul(d, y);
    return sub(weighted, mul(y, sum(weighted, [front], true)));
  });

export const logSoftmax = (x: Value, axis = -1): Value =>
  normalised("LogSoftmax", x, axis, (d, y, front) => sub(d, mul(exp(y), sum(d, [front], true))));

function normalised(type: string, x: Value, axis: number, rule: (d: Value, y: Value, front: number) => Value): Value {
  const front = frontAxis(axis, x.shape.length, type);
  const attributes = { axis: front };
  return emit({ type, inputs: [x], attributes, shape: x.shape, rule: (d, _, y) => [rule(d, y, front)] });
}

// ---- operations that move numbers and change none

export function transpose(x: Value, permutation: readonly number[]): Value {
  const inverse = permutation.map((_, i) => permutation.indexOf(i));
  if (permutation.length !== x.shape.length || inverse.includes(-1)) {
    throw new GraphError("shape", `transpose: [${permutation}] is no permutation of the axes of [${x.shape}]`);
  }
  return emit({
    type: "Transpose",
    inputs: [x],
    attributes: { perm: [...permutation] },
    shape: permutation.map((axis) => x.shape[axis]),
    rule: (d) => [transpose(d, inverse)],
  });
}

export function concat(values: readonly Value[], axis: number): Value {
  const first = values[0];
  const front = frontAxis(axis, first.shape.length, "Concat");
  const dims = values.map((value) => value.shape[front]);
  const total = dims.every((dim) => typeof dim === "number") ? dims.reduce((a, b) => a + b, 0) : dims.join("+");
  return emit({
    type: "Concat",
    inputs: values,
    attributes: { axis: front },
    shape: first.shape.map((dim, i) => (i === front ? total : dim)),
    rule: (d, needs) => {
      let start = 0;
      return values.map((value, i) => {
        const size = known(value.shape[front], "concat");
        start += size;
        return needs(i) ? slice(d, front, start - size, start) : undefined;
      });
    },
  });
}

/** Entries start..end-1 of an axis. */
export function slice(x: Value, axis: number, start: number, end: number): Value {
  const front = frontAxis(axis, x.shape.length, "Slice");
  const size = x.shape[front];
  if (start < 0 || end < start || (typeof size === "number" && end > size)) {
    throw new GraphError("shape", `slice: ${start}..${end} of axis ${axis} of [${x.shape}]`);
  }
  return emit({
    type: "Slice",
    inputs: [x, ...[start, end, front].map((n) => x.graph.constant([n], "int64"))],
    shape: x.shape.map((dim, i) => (i === front ? end - start : dim)),
    rule: (d) => [pad(d, front, start, known(size, "slice") - end), undefined, undefined, undefined],
  });
}

/** Parts of these sizes along an axis, one after the other. Its gradient belongs to the operation that uses it. */
export function split(x: Value, axis: number, sizes: readonly number[]): Value[] {
  const front = frontAxis(axis, x.shape.length, "Split");
  const outputs = sizes.map((size) => ({ dtype: x.dtype, shape: x.shape.map((dim, i) => (i === front ? size : dim)) }));
  return x.graph.op("Split", [x, x.graph.constant(sizes, "int64")], { axis: front }, outputs);
}

/** Zeros before and after along an axis. */
export function pad(x: Value, axis: number, before: number, after: number): Value {
  const front = frontAxis(axis, x.shape.length, "Pad");
  const size = x.shape[front];
  const amounts = [before, after].flatMap((amount) => x.shape.map((_, i) => (i === front ? amount : 0)));
  return emit({
    type: "Pad",
    inputs: [x, x.graph.constant(amounts, "int64")],
    shape: x.shape.map((dim, i) =>
      i !== front ? dim : typeof size === "number" ? size + before + after : `${size}+${before + after}`,
    ),
    rule: (d) => [slice(d, front, before, before + known(size, "pad")), undefined],
  });
}

/** The size of an axis, for a gradient. */
function known(size: Dim, operation: string): number {
  if (typeof size === "number") return size;
  throw new GraphError("gradient", `${operation}: the axis has the named dim '${size}'; its gradient needs a number`);
}

// ---- reading and writing at indices. Nothing here adds at an index that may come twice: that races in ONNX Runtime

/** Entries of axis 0: x[indices]. Differentiable in `x` through `rows` and `embedding` (composites.ts) only. */
export function gather(x: Value, indices: Value): Value {
  if (x.requiresGrad && x.graph.model.recording) {
    throw new GraphError(
      "gradient",
      "gather has no gradient (adding at duplicate indices races in ONNX Runtime); use rows() or embedding()",
    );
  }
  const shape = [...indices.shape, ...x.shape.slice(1)];
  return emit({ type: "Gather", inputs: [x, indices], attributes: { axis: 0 }, shape });
}

/** x[..., indices[..., j]] along the last axis; `indices` int32 or int64 of x's rank. Its gradient is for one index per row. */
export function gatherElements(x: Value, indices: Value): Value {
  const width = indices.shape.at(-1);
  return emit({
    type: "GatherElements",
    inputs: [x, indices],
    attributes: { axis: x.shape.length - 1 },
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
  const axis = x.shape.length - 1;
  return emit({ type: "ScatterElements", inputs: [x, indices, updates], attributes: { axis }, shape: x.shape });
}
