/** Activation checkpointing: the backward pass computes values again instead of keeping them from the forward pass. */
import { during } from "./emit.ts";
import { backward } from "./gradients.ts";
import type { TapeEntry, Value } from "./graph.ts";
import { add } from "./primitives.ts";

/**
 * Returns the values of `forward(inputs)` and keeps only `inputs` for the backward pass, which computes `forward` a second time
 * (gradient checkpointing). The gradients equal the gradients of `forward` bit for bit, also for values that `forward` captures.
 */
export function checkpoint(inputs: readonly Value[], forward: (inputs: Value[]) => readonly Value[]): Value[] {
  const { model } = inputs[0].graph;
  const emitted: TapeEntry[] = []; // read to find the values' inputs, then forgotten
  const outputs = during(model, { tape: emitted }, () => forward([...inputs]));
  const inside = new Set(emitted.flatMap((entry) => entry.outputs.map(({ name }) => name)));
  const outside = emitted.flatMap((entry) => entry.inputs).filter((x) => x.requiresGrad && !inside.has(x.name));
  const sources = new Map(outside.map((input) => [input.name, input]));
  if (sources.size === 0) return [...outputs];
  model.recomputes = true;
  return inputs[0].graph.record("checkpoint", [...sources.values()], outputs, (cotangents) => {
    const last = cotangents.find((cotangent) => cotangent !== undefined)!;
    const again = inputs.map((input) => after(input, last));
    return during(model, { recording: true, tape: [] }, () => {
      const seeds = forward(again).flatMap((output, i) => {
        const cotangent = cotangents[i];
        return cotangent ? [[output, cotangent] as const] : [];
      });
      const found = backward(seeds);
      return [...sources.keys()].map((name) => {
        // a given value may be captured, too
        const copies = again.filter((_, i) => inputs[i].name === name).map((copy) => copy.name);
        const parts = [name, ...copies].flatMap((source) => found.get(source) ?? []);
        return parts.length > 0 ? parts.reduce((a, b) => add(a, b)) : undefined;
      });
    });
  });
}

/**
 * Returns the same value, which ONNX Runtime does not use before `others` (of rank 1 at least) exist. ONNX Runtime orders a graph by data
 * alone, and would otherwise recompute before the backward pass. The edge is a Reshape to a shape of zeros, which keep each size. The zeros
 * are computed from the shapes of `others`, so the edge costs nothing, provided that the session does not fold it (`Model.recomputes`).
 */
export function after(value: Value, ...others: readonly Value[]): Value {
  const graph = value.graph;
  graph.model.recomputes = true;
  let asItIs = graph.constant(new Array(value.shape.length).fill(0), "int64"); // Reshape: 0 is the size it has
  for (const other of others) {
    const [size] = graph.op("Shape", [other], { start: 0, end: 1 }, [{ dtype: "int64", shape: [1] }]);
    [asItIs] = graph.op("Mul", [size!, asItIs], {}, [asItIs]) as [Value];
  }
  const [same] = graph.op("Reshape", [value, asItIs], {}, [value]);
  return { ...same!, requiresGrad: value.requiresGrad };
}
