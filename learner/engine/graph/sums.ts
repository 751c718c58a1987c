/** Sums that a kernel makes by itself: a product adds to a matrix (Gemm), rows are added to some of a table's (ScatterND). */
import { add } from "./elementwise.ts";
import type { Value } from "./graph.ts";

/** `value` can be computed added to a total of its shape, without being there by itself. @returns value */
export function addable(value: Value, addedTo: (total: Value) => Value): Value {
  value.graph.model.addedTo.set(value.name, addedTo);
  return value;
}

/** a + b, of the same shape. A value that is used in this sum alone is not computed by itself then. */
export function plus(a: Value, b: Value): Value {
  const { addedTo } = a.graph.model;
  const [total, part] = addedTo.has(b.name) ? [a, addedTo.get(b.name)] : [b, addedTo.get(a.name)];
  if (!part) return add(a, b);
  const sum = part(total);
  return addedTo.has(total.name) ? addable(sum, (more) => part(plus(more, total))) : sum;
}
