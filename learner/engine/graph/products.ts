/** Matrix products. */

import { reshape, sumTo } from "./broadcasting.ts";
import { add, cast, stopGradient } from "./elementwise.ts";
import { emit } from "./emit.ts";
import { GraphError } from "./errors.ts";
import { custom } from "./gradients.ts";
import { float, type Value } from "./graph.ts";
import { broadcast } from "./shapes.ts";
import { addable } from "./sums.ts";

export interface MatMulOptions {
  transA?: boolean;
  transB?: boolean;
  /** the product is multiplied by this */
  alpha?: number;
  /** in float32 also where the graph computes its products in bfloat16 */
  precise?: boolean;
}

/**
 * alpha * A B over the last two axes, earlier axes broadcast; either operand may be read transposed. In a graph that computes in
 * bfloat16 operands are cast to it, and the product is bfloat16, unless it is `precise`.
 */
export function matmul(a: Value, b: Value, options: MatMulOptions = {}): Value {
  const { transA = false, transB = false, alpha = 1, precise = false } = options;
  if (!precise && narrows(a) && (a.dtype !== "bfloat16" || b.dtype !== "bfloat16"))
    return matmul(half(a), half(b), options);
  const [aShape, bShape] = [a.shape, b.shape];
  if (aShape.length < 2 || bShape.length < 2)
    throw new GraphError("shape", `matmul: [${aShape}] and [${bShape}] need two axes at least`);
  const rows = aShape.at(transA ? -1 : -2)!;
  const columns = bShape.at(transB ? -2 : -1)!;
  if (aShape.at(transA ? -2 : -1) !== bShape.at(transB ? -1 : -2)) {
    throw new GraphError(
      "shape",
      `matmul: the inner dims of [${aShape}]${transA ? "^T" : ""} and [${bShape}]${transB ? "^T" : ""} differ`,
    );
  }
  const batch = broadcast(
    [aShape.slice(0, -2), bShape.slice(0, -2)].map((s) => (s.length > 0 ? s : [1])),
    "matmul",
  );
  const lead = Math.max(aShape.length, bShape.length) === 2 ? [] : batch;
  const plain = !transA && !transB && alpha === 1;
  const shape = [...lead, rows, columns];
  return custom(
    "MatMul",
    [a, b],
    ([left, right]) => {
      const value = emit({
        type: plain ? "MatMul" : "FusedMatMul",
        domain: plain ? "" : "com.microsoft",
        inputs: [left!, right!],
        attributes: plain ? {} : { transA, transB, alpha: float(alpha) },
        shape,
      });
      // Gemm broadcasts a total of one row or column: on CUDA by a product, which must not write what it reads
      if (lead.length > 0 || rows === 1 || columns === 1) return [value];
      const addedTo = (total: Value) =>
        emit({
          type: "Gemm",
          inputs: [left!, right!, total],
          attributes: { transA, transB, alpha: float(alpha) },
          shape,
        });
      return [addable(value, addedTo)];
    },
    ([d]) => [
      a.requiresGrad
        ? sumTo(
            transA
              ? matmul(b, d!, { transA: transB, transB: true, alpha, precise })
              : matmul(d!, b, { transB: !transB, alpha, precise }),
            aShape,
          )
        : undefined,
      b.requiresGrad ? weightCotangent(a, d!, b, { transA, transB, alpha, precise }) : undefined,
    ],
  )[0];
}

/** Whether the graph of a value computes its products in bfloat16. */
export const narrows = ({ graph }: Pick<Value, "graph">): boolean => graph.model.compute === "bfloat16";

/**
 * x in bfloat16; asked for again, the same value. A cast that has a gradient is known only to the tape that it is on: a part that
 * is computed again (checkpoint.ts) makes its own.
 */
export function half(x: Value): Value {
  if (x.dtype === "bfloat16") return x;
  const { halves, tape, recording } = x.graph.model;
  const differentiable = x.requiresGrad && recording;
  const known = halves.get(x.name);
  if (known && !differentiable) return stopGradient(known.value);
  if (known?.value.requiresGrad && known.tape === tape) return known.value;
  const value = cast(x, "bfloat16");
  halves.set(x.name, { value, tape });
  return value;
}

function weightCotangent(
  a: Value,
  d: Value,
  b: Value,
  { transA, transB, alpha, precise }: Required<MatMulOptions>,
): Value {
  if (b.shape.length === 2 && a.shape.length > 2 && !transA) {
    // one tall product instead of one per batch entry and a sum
    const rows = reshape(a, [-1, a.shape.at(-1)!]);
    const cotangents = reshape(d, [-1, d.shape.at(-1)!]);
    return transB
      ? matmul(cotangents, rows, { transA: true, alpha, precise })
      : matmul(rows, cotangents, { transA: true, alpha, precise });
  }
  return sumTo(
    transB
      ? matmul(d, a, { transA: true, transB: transA, alpha, precise })
      : matmul(a, d, { transA: !transA, alpha, precise }),
    b.shape,
  );
}

/** x W^T (+ bias) with W in Hugging Face layout [out, in]; x [..., in]. */
export function linear(x: Value, weight: Value, bias?: Value): Value {
  const y = matmul(x, weight, { transB: true });
  return bias ? add(y, bias) : y;
}
