/** Shape arithmetic with named dims: a product of dims is written `a*b`, factors sorted, numbers first. */
import { GraphError } from "./errors.ts";
import type { Dim, Shape } from "./graph.ts";

/** The product of dims, as a number when all are known. */
export function product(dims: Shape): Dim {
  const names: string[] = [];
  let known = 1;
  for (const dim of dims) {
    if (typeof dim === "number") known *= dim;
    else
      for (const factor of dim.split("*")) {
        if (/^\d+$/.test(factor)) known *= Number(factor);
        else names.push(factor);
      }
  }
  if (names.length === 0 || known === 0) return known;
  return [...(known === 1 ? [] : [String(known)]), ...names.sort()].join("*");
}

export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((dim, i) => dim === b[i]);
}

/** The shape of an element-wise operation on `shapes` (ONNX = numpy broadcasting). */
export function broadcast(shapes: readonly Shape[], operation: string): Dim[] {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, axis) => {
    let result: Dim = 1;
    for (const shape of shapes) {
      const dim = shape[axis - rank + shape.length] ?? 1;
      if (dim === 1 || dim === result) continue;
      if (result !== 1) {
        const all = shapes.map((shape) => `[${shape}]`).join(" and ");
        throw new GraphError("shape", `${operation}: shapes ${all} do not broadcast (${result} against ${dim})`);
      }
      result = dim;
    }
    return result;
  });
}

/** Axis counted from the front; checks that it exists. */
export function frontAxis(axis: number, rank: number, operation: string): number {
  const front = axis < 0 ? axis + rank : axis;
  if (front < 0 || front >= rank)
    throw new GraphError("shape", `${operation}: axis ${axis} of a value of rank ${rank}`);
  return front;
}
