/** Sums and the like over axes, and softmax. */
import { cast, div, equal, exp, mul, sub } from "./elementwise.ts";
import { emit, type Rule } from "./emit.ts";
import type { Dim, Shape, Value } from "./graph.ts";
import { expand, reshape } from "./layout.ts";
import { frontAxis, product, sameShape } from "./shapes.ts";

/** Sums a cotangent down to the shape of an input that was broadcast. */
export function sumTo(value: Value, shape: Shape): Value {
  if (sameShape(value.shape, shape)) return value;
  const lead = value.shape.length - shape.length;
  const axes = value.shape.flatMap((dim, i) => (i < lead || (shape[i - lead] === 1 && dim !== 1) ? [i] : []));
  const summed = axes.length > 0 ? sum(value, axes, true) : value;
  return sameShape(summed.shape, shape) ? summed : reshape(summed, shape);
}

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
