/** Element-wise operations. Shapes broadcast as in numpy. */

import { sumTo } from "./broadcasting.ts";
import { emit, lift, type Operand, pair, type Rule, unary } from "./emit.ts";
import { float, isFloat, type Value } from "./graph.ts";
import { broadcast } from "./shapes.ts";
import { DTYPES, type DType } from "./tensor.ts";

// ---- two operands

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
  const result = emit({
    type: "Cast",
    inputs: [x],
    attributes: { to: DTYPES[dtype].code },
    dtype,
    shape: x.shape,
    rule,
  });
  if (dtype === "float32" && (x.dtype === "bfloat16" || x.dtype === "float16")) castFrom.set(result.name, x);
  return result;
}

/** The same numbers, with no gradient. */
export function stopGradient(x: Value): Value {
  return { ...x, requiresGrad: false };
}
