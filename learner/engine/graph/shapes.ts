/** Shape arithmetic with named dims: a product of dims is written `a*b`, factors sorted, numbers first. */
import { GraphError } from "./errors.ts";
import type { Dim, Shape } from "./graph.ts";

/** The numbers among the factors of dims, multiplied, and the names. */
function factors(dims: Shape): { known: number; names: string[] } {
  const all = dims.flatMap((dim) => String(dim).split("*"));
  const isNumber = (factor: string) => /^\d+$/.test(factor);
  return {
    known: all.filter(isNumber).reduce((known, factor) => known * Number(factor), 1),
    names: all.filter((factor) => !isNumber(factor)),
  };
}

/** The product of dims, as a number when all are known. */
export function product(dims: Shape): Dim {
  const { known, names } = factors(dims);
  if (names.length === 0 || known === 0) return known;
  names.sort();
  return (known === 1 ? names : [String(known), ...names]).join("*");
}

/** `whole / part` as a dim; undefined when it does not divide. */
export function quotient(whole: Dim, part: Dim): Dim | undefined {
  const [a, b] = [factors([whole]), factors([part])];
  for (const name of b.names) {
    const at = a.names.indexOf(name);
    if (at < 0) return undefined;
    a.names.splice(at, 1);
  }
  if (b.known === 0 || a.known % b.known !== 0) return undefined;
  return product([a.known / b.known, ...a.names]);
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
        throw new GraphError(
          "shape",
          `${operation}: shapes ${shapes.map((s) => `[${s}]`).join(" and ")} do not broadcast (${result} against ${dim})`,
        );
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
