/** Matrix products with their gradients, in the graph's half precision if it has one. */
import { custom, emit, stopGradient } from "./emit.ts";
import { GraphError } from "./errors.ts";
import { float, type Value } from "./graph.ts";
import { add, addable, cast, reshape, sumTo } from "./primitives.ts";
import { broadcast, product } from "./shapes.ts";

interface MatMulOptions {
  transA?: boolean;
  transB?: boolean;
  alpha?: number;
  /** float32, also if the graph computes its products in bfloat16 */
  precise?: boolean;
}

/**
 * Returns alpha * A B over the last two axes; earlier axes broadcast. Either operand may be read transposed. A graph that computes in
 * bfloat16 casts the operands, and the product is bfloat16, unless `precise` is set.
 */
export function matmul(a: Value, b: Value, options: MatMulOptions = {}): Value {
  const { transA = false, transB = false, alpha = 1, precise = false } = options;
  if (!precise && narrows(a) && (a.dtype !== a.graph.model.compute || b.dtype !== a.graph.model.compute))
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
  const lead = broadcast([aShape.slice(0, -2), bShape.slice(0, -2)], "matmul");
  const plain = !transA && !transB && alpha === 1;
  const shape = [...lead, rows, columns];
  const attributes = { transA, transB, alpha: float(alpha) };
  return custom(
    "MatMul",
    [a, b],
    (inputs) => {
      const value = plain
        ? emit({ type: "MatMul", inputs, shape })
        : emit({ type: "FusedMatMul", domain: "com.microsoft", inputs, attributes, shape });
      // Gemm broadcasts a total of one row or column: on CUDA by a product, which must not write what it reads
      if (lead.length > 0 || rows === 1 || columns === 1) return [value];
      return [addable(value, (total) => emit({ type: "Gemm", inputs: [...inputs, total], attributes, shape }))];
    },
    ([d]) => {
      const by = { alpha, precise };
      const left = () =>
        transA ? matmul(b, d!, { ...by, transA: transB, transB: true }) : matmul(d!, b, { ...by, transB: !transB });
      return [
        a.requiresGrad ? sumTo(left(), aShape) : undefined,
        b.requiresGrad ? rightCotangent(a, d!, b, { ...by, transA, transB }) : undefined,
      ];
    },
  )[0];
}

/** Returns whether the graph of a value computes its products in half precision: bfloat16, or float16 in generation. */
export const narrows = ({ graph }: Pick<Value, "graph">): boolean => graph.model.compute !== "float32";

/**
 * Returns x in the graph's half precision, the same value for every call. A cast that has a gradient belongs to its tape: a part that is
 * computed again (recomputation.ts) makes its own cast.
 */
export function half(x: Value): Value {
  if (x.dtype === x.graph.model.compute) return x;
  const { halves, tape, recording } = x.graph.model;
  const differentiable = x.requiresGrad && recording;
  const known = halves.get(x.name);
  if (known && !differentiable) return stopGradient(known.value);
  if (known?.value.requiresGrad && known.tape === tape) return known.value;
  const value = cast(x, x.graph.model.compute);
  halves.set(x.name, { value, tape });
  return value;
}

/** Returns the cotangent of B. A tall A and a single matrix B need one tall product instead of one product per batch entry and a sum. */
function rightCotangent(a: Value, d: Value, b: Value, { transA, transB, ...by }: Required<MatMulOptions>): Value {
  const tall = b.shape.length === 2 && a.shape.length > 2 && !transA;
  const flat = (x: Value) => (tall ? reshape(x, [product(x.shape.slice(0, -1)), x.shape.at(-1)!]) : x);
  const [left, right] = [flat(a), flat(d)];
  return sumTo(
    transB
      ? matmul(right, left, { ...by, transA: true, transB: transA })
      : matmul(left, right, { ...by, transA: !transA }),
    b.shape,
  );
}

/** The output of a linear layer, x W^T + bias [rows, out]. It is emitted when a reader asks for it, once, in the way that suits the reader. */
export interface LinearOutput {
  /** in the graph's precision */
  narrow(): Value;
  /** float32, where a large bias does not round away the other summand */
  wide(): Value;
  /** without the bias, in the graph's precision */
  product(): Value;
  readonly bias: Value | undefined;
}

/** Returns x W^T (+ bias) with W in Hugging Face layout [out, in]; x [..., in]. */
export function linear(x: Value, weight: Value, bias?: Value): Value {
  const y = matmul(x, weight, { transB: true });
  return bias ? add(y, bias) : y;
}
