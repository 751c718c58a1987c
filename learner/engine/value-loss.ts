/** PPO's clipped value loss as a graph over all response tokens of a micro-batch. */
import type { Graph, Value } from "./graph/graph.ts";
import { add, clip, maximum, mul, square, sub, sum } from "./graph/primitives.ts";
import { RESPONSE } from "./model/decoder.ts";

export interface ValueLossInputs {
  oldValues: Value;
  returns: Value;
  /** what a token's loss is multiplied by: 1 / normaliser */
  valueScale: Value;
  /** scalar: how far V may move from its old value */
  valueClip: Value;
}

export function valueLossInputs(g: Graph): ValueLossInputs {
  const token = (name: string) => g.input(name, "float32", [RESPONSE]);
  return {
    oldValues: token("oldValues"),
    returns: token("returns"),
    valueScale: token("valueScale"),
    valueClip: g.input("valueClip", "float32", []),
  };
}

/** sum over tokens of valueScale * 0.5 max((V - R)^2, (clip(V, V_old +- valueClip) - R)^2); a scalar. */
export function valueLoss(values: Value, inputs: ValueLossInputs): Value {
  const { oldValues, returns, valueClip } = inputs;
  const clipped = nearOld(values, oldValues, valueClip);
  const worst = maximum(square(sub(values, returns)), square(sub(clipped, returns)));
  return mul(sum(mul(worst, inputs.valueScale)), 0.5);
}

/** V_old + clip(V - V_old, +-limit) */
function nearOld(values: Value, oldValues: Value, limit: Value): Value {
  return add(oldValues, clip(sub(values, oldValues), mul(limit, -1), limit));
}
