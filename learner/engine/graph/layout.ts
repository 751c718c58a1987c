/** Operations that move numbers and change none. */
import { emit } from "./emit.ts";
import { GraphError } from "./errors.ts";
import type { Dim, Value } from "./graph.ts";
import { frontAxis } from "./shapes.ts";

export function transpose(x: Value, permutation: readonly number[]): Value {
  const inverse = permutation.map((_, i) => permutation.indexOf(i));
  if (permutation.length !== x.shape.length || inverse.includes(-1)) {
    throw new GraphError("shape", `transpose: [${permutation}] is no permutation of the axes of [${x.shape}]`);
  }
  return emit({
    type: "Transpose",
    inputs: [x],
    attributes: { perm: [...permutation] },
    shape: permutation.map((axis) => x.shape[axis]),
    rule: (d) => [transpose(d, inverse)],
  });
}

export function concat(values: readonly Value[], axis: number): Value {
  const first = values[0];
  const front = frontAxis(axis, first.shape.length, "Concat");
  const dims = values.map((value) => value.shape[front]);
  const total = dims.every((dim) => typeof dim === "number") ? dims.reduce((a, b) => a + b, 0) : dims.join("+");
  return emit({
    type: "Concat",
    inputs: values,
    attributes: { axis: front },
    shape: first.shape.map((dim, i) => (i === front ? total : dim)),
    rule: (d, needs) => {
      let start = 0;
      return values.map((value, i) => {
        const size = known(value.shape[front], "concat");
        start += size;
        return needs(i) ? slice(d, front, start - size, start) : undefined;
      });
    },
  });
}

/** Entries start..end-1 of an axis. */
export function slice(x: Value, axis: number, start: number, end: number): Value {
  const front = frontAxis(axis, x.shape.length, "Slice");
  const size = x.shape[front];
  if (start < 0 || end < start || (typeof size === "number" && end > size)) {
    throw new GraphError("shape", `slice: ${start}..${end} of axis ${axis} of [${x.shape}]`);
  }
  return emit({
    type: "Slice",
    inputs: [x, ...[start, end, front].map((n) => x.graph.constant([n], "int64"))],
    shape: x.shape.map((dim, i) => (i === front ? end - start : dim)),
    rule: (d) => [pad(d, front, start, known(size, "slice") - end), undefined, undefined, undefined],
  });
}

/** Zeros before and after along an axis. */
export function pad(x: Value, axis: number, before: number, after: number): Value {
  const front = frontAxis(axis, x.shape.length, "Pad");
  const size = x.shape[front];
  const amounts = x.shape
    .map((_, i) => (i === front ? before : 0))
    .concat(x.shape.map((_, i) => (i === front ? after : 0)));
  return emit({
    type: "Pad",
    inputs: [x, x.graph.constant(amounts, "int64")],
    shape: x.shape.map((dim, i) =>
      i !== front ? dim : typeof size === "number" ? size + before + after : `${size}+${before + after}`,
    ),
    rule: (d) => [slice(d, front, before, before + known(size, "pad")), undefined],
  });
}

/** The size of an axis, for a gradient. */
function known(size: Dim, operation: string): number {
  if (typeof size === "number") return size;
  throw new GraphError("gradient", `${operation}: the axis has the named dim '${size}'; its gradient needs a number`);
}
