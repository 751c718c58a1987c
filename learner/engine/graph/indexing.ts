/** Reading and writing at indices. Nothing here adds at an index that may come twice: that races in ONNX Runtime. */

import { expand } from "./broadcasting.ts";
import { emit } from "./emit.ts";
import { GraphError } from "./errors.ts";
import type { Value } from "./graph.ts";
import { frontAxis } from "./shapes.ts";

/** Entries of axis 0: x[indices]. Differentiable in `x` through `rows` and `embedding` (composites.ts) only. */
export function gather(x: Value, indices: Value, axis = 0): Value {
  if (x.requiresGrad && x.graph.model.recording) {
    throw new GraphError(
      "gradient",
      "gather has no gradient (adding at duplicate indices races in ONNX Runtime); use rows() or embedding()",
    );
  }
  const front = frontAxis(axis, x.shape.length, "Gather");
  return emit({
    type: "Gather",
    inputs: [x, indices],
    attributes: { axis: front },
    shape: [...x.shape.slice(0, front), ...indices.shape, ...x.shape.slice(front + 1)],
  });
}

/** x[..., indices[..., j]] along the last axis; `indices` int32 or int64 of x's rank. Its gradient adds nothing twice when a row's indices are distinct. */
export function gatherElements(x: Value, indices: Value): Value {
  const axis = x.shape.length - 1;
  const width = indices.shape.at(-1);
  return emit({
    type: "GatherElements",
    inputs: [x, indices],
    attributes: { axis },
    shape: indices.shape,
    rule: (d) => {
      if (width !== 1)
        throw new GraphError("gradient", `gatherElements: its gradient takes one index per row, not ${width}`);
      const zeros = expand(x.graph.constant(0, x.dtype), x.shape);
      return [scatterElements(zeros, indices, d), undefined];
    },
  });
}

/** A copy of x with x[..., indices[..., j]] = updates; indices of a row are distinct. No gradient. */
export function scatterElements(x: Value, indices: Value, updates: Value): Value {
  return emit({
    type: "ScatterElements",
    inputs: [x, indices, updates],
    attributes: { axis: x.shape.length - 1 },
    shape: x.shape,
  });
}
