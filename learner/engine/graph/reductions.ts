/** Means and the like over axes, and softmax. */
import { reduce, reducedShape, reshape, sum } from "./broadcasting.ts";
import { cast, div, equal, exp, mul, sub } from "./elementwise.ts";
import { emit } from "./emit.ts";
import type { Value } from "./graph.ts";
import { frontAxis, product } from "./shapes.ts";

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
