/** Numbers repeated along axes, their sums over axes, and other shapes of the same numbers: each is in the gradient of another. */
import { emit, type Rule } from "./emit.ts";
import { GraphError } from "./errors.ts";
import type { Dim, Shape, Value } from "./graph.ts";
import { broadcast, frontAxis, product, quotient, sameShape } from "./shapes.ts";

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

/** The shape after a reduction over `axes`. */
export function reducedShape(x: Value, axes: readonly number[], keepDims: boolean): Dim[] {
  return x.shape.flatMap((dim, i) => (axes.includes(i) ? (keepDims ? [1] : []) : [dim]));
}

/** An operator that reduces over `axes` (all when left out). */
export function reduce(
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

/** Sums a cotangent down to the shape of an input that was broadcast. */
export function sumTo(value: Value, shape: Shape): Value {
  if (sameShape(value.shape, shape)) return value;
  const lead = value.shape.length - shape.length;
  const axes = value.shape.flatMap((dim, i) => (i < lead || (shape[i - lead] === 1 && dim !== 1) ? [i] : []));
  const summed = axes.length > 0 ? sum(value, axes, true) : value;
  return sameShape(summed.shape, shape) ? summed : reshape(summed, shape);
}
