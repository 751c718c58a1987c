/** Reverse-mode differentiation over the tape that primitives record. */

import { during } from "./emit.ts";
import { GraphError } from "./errors.ts";
import type { Value } from "./graph.ts";
import { plus } from "./primitives.ts";

/**
 * d loss / d params, one value per parameter of its shape. `loss` is a scalar.
 * A parameter that the loss does not depend on is an error: it is almost always a mistake in the graph.
 */
export function gradients(loss: Value, params: readonly Value[]): Value[] {
  if (loss.shape.length !== 0)
    throw new GraphError("gradient", `gradients: the loss has the shape [${loss.shape}]; sum it to a scalar`);
  const one = loss.graph.constant(1, loss.dtype);
  const cotangents = backward([[loss, one]]);
  return params.map((param) => {
    const cotangent = cotangents.get(param.name);
    if (!cotangent) {
      const reason = param.requiresGrad ? "the loss does not depend on it" : "it was made without requiresGrad";
      throw new GraphError("gradient", `gradients: '${param.name}' has none: ${reason}`);
    }
    return cotangent;
  });
}

/** Cotangents by value name, computed from `seeds` [value, cotangent]. */
export function backward(seeds: readonly (readonly [Value, Value])[]): Map<string, Value> {
  const model = seeds[0][0].graph.model;
  const cotangents = new Map<string, Value>();
  const accumulate = (value: Value, cotangent: Value) => {
    const known = cotangents.get(value.name);
    cotangents.set(value.name, known ? plus(known, cotangent) : cotangent);
  };
  for (const [value, cotangent] of seeds) accumulate(value, cotangent);
  // gradients of gradients are not needed, and inside a rule everything is a constant
  during(model, { recording: false }, () => {
    for (const entry of model.tape.toReversed()) {
      const incoming = entry.outputs.map((output) => cotangents.get(output.name));
      if (incoming.every((cotangent) => cotangent === undefined)) continue;
      for (const [i, cotangent] of entry.vjp(incoming).entries()) {
        const input = entry.inputs[i];
        if (cotangent && input.requiresGrad) accumulate(input, cotangent);
      }
    }
  });
  return cotangents;
}
