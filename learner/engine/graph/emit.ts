/** How operators enter a graph together with their gradient rules. */
import { GraphError } from "./errors.ts";
import { type Attribute, type Graph, isFloat, type Shape, type Value } from "./graph.ts";
import type { DType } from "./tensor.ts";

/**
 * Computes the cotangents of the inputs from the cotangent of the output, with primitives. `needs(i)` says whether the i-th input needs
 * a cotangent. The rule closes over the inputs.
 */
export type Rule = (cotangent: Value, needs: (input: number) => boolean, output: Value) => (Value | undefined)[];
/** A number in place of a value is a constant of the other operand's dtype. */
export type Operand = Value | number;

interface Emission {
  type: string;
  inputs: readonly Value[];
  attributes?: Record<string, Attribute>;
  shape: Shape;
  dtype?: DType;
  domain?: string;
  rule?: Rule;
  /** the rule's name in the table of README.md; default: the operator's type */
  name?: string;
}

/** Emits one operator with one output. @throws GraphError `gradient` when it has no rule and would lose an input's gradient */
export function emit({ type, inputs, attributes = {}, shape, dtype, domain, rule, name = type }: Emission): Value {
  const graph = inputs[0].graph;
  const outputs = graph.op(type, inputs, attributes, [{ dtype: dtype ?? inputs[0].dtype, shape }], domain);
  if (!rule) {
    const lost = isFloat(outputs[0].dtype) && graph.model.recording && inputs.find((input) => input.requiresGrad);
    if (lost) throw new GraphError("gradient", `${type} has no gradient, and '${lost.name}' requires one`);
    return outputs[0];
  }
  const recorded = graph.record(name, inputs, outputs, ([cotangent]) =>
    cotangent ? rule(cotangent, (i) => inputs[i].requiresGrad, recorded[0]) : inputs.map(() => undefined),
  );
  return recorded[0];
}

export function lift(operand: Operand, like: Value): Value {
  return typeof operand === "number" ? like.graph.constant(operand, like.dtype) : operand;
}

export function pair(a: Operand, b: Operand, operation: string): [Value, Value] {
  if (typeof a === "number" && typeof b === "number")
    throw new GraphError("graph", `${operation}: one operand has to be a value`);
  const left = lift(a, b as Value);
  const right = lift(b, left);
  if (left.dtype !== right.dtype)
    throw new GraphError("dtype", `${operation}: ${left.dtype} and ${right.dtype}; cast one of them`);
  return [left, right];
}

export function unary(type: string, x: Value, rule: Rule): Value {
  return emit({ type, inputs: [x], shape: x.shape, rule });
}

/** Returns the same value without a gradient. */
export const stopGradient = (x: Value): Value => ({ ...x, requiresGrad: false });

/** Returns the result of `emit`, which runs with the given tape or with recording switched on or off. */
export function during<T>(
  model: Graph["model"],
  change: Partial<Pick<Graph["model"], "tape" | "recording">>,
  emit: () => T,
): T {
  const { tape, recording } = model;
  Object.assign(model, change);
  try {
    return emit();
  } finally {
    Object.assign(model, { tape, recording });
  }
}

/**
 * An operator with a gradient rule of its own, called `name` in the table of README.md: `forward` is emitted without recording, `vjp` gets
 * the cotangents of its outputs (undefined where the loss does not use one) and the outputs, and returns the cotangents of `inputs`.
 */
export function custom(
  name: string,
  inputs: readonly Value[],
  forward: (inputs: Value[]) => readonly Value[],
  vjp: (cotangents: (Value | undefined)[], outputs: readonly Value[]) => (Value | undefined)[],
): Value[] {
  const graph = inputs[0].graph;
  const outputs = during(graph.model, { recording: false }, () => forward(inputs.map(stopGradient)));
  return graph.record(name, inputs, outputs, (cotangents) => vjp(cotangents, outputs));
}
