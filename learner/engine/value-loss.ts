/** PPO's clipped value loss as a graph over all response tokens of a micro-batch. */
import type { Graph, Value } from "./graph/graph.ts";
import { add, clip, maximum, mul, square, sub, sum } from "./graph/primitives.ts";
import { RESPONSE } from "./model/decoder.ts";

export function valueLossInputs(g: Graph) {
  const token = (name: string) => g.input(name, "float32", [RESPONSE]);
  return {
    oldValues: token("oldValues"),
    returns: token("returns"),
    /** what a token's loss is multiplied by: 1 / normaliser */
    valueScale: token("valueScale"),
    /** how far V may move from its old value */
    valueClip: g.input("valueClip", "float32", []),
  };
}

/** sum over tokens of valueScale * 0.5 max((V - R)^2, (clip(V, V_old +- valueClip) - R)^2); a scalar. */
export function valueLoss(
  values: Value,
  { oldValues, returns, valueScale, valueClip }: ReturnType<typeof valueLossInputs>,
): Value {
  const clipped = add(oldValues, clip(sub(values, oldValues), mul(valueClip, -1), valueClip));
  const worst = maximum(square(sub(values, returns)), square(sub(clipped, returns)));
  return mul(sum(mul(worst, valueScale)), 0.5);
}
