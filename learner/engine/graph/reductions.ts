/** The largest entry, running sums and softmax along axes. */
import { reduce, reshape, sum } from "./broadcasting.ts";
import { cast, div, equal, exp, mul, sub } from "./elementwise.ts";
import { emit } from "./emit.ts";
import type { Value } from "./graph.ts";
import { frontAxis } from "./shapes.ts";

/** Largest entry; equal entries share the gradient. */
export function max(x: Value, axes?: readonly number[], keepDims = false): Value {
  return reduce("ReduceMax", x, axes, keepDims, (kept) => (d, _, y) => {
    const hit = cast(equal(x, reshape(y, kept)), x.dtype);
    const list = (axes ?? x.shape.map((__, i) => i)).map((axis) => frontAxis(axis, x.shape.length, "max"));
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
  return emit({
    type,
    inputs: [x],
    attributes: { axis: front },
    shape: x.shape,
    rule: (d, _, y) => [rule(d, y, front)],
  });
}
