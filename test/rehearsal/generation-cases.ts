/** The kernels of generation beside the primitives that they stand for: odd rows and sizes, ranks that do not fill a block, layers without an adapter. */
import assert from "node:assert/strict";
import { rmsNorm } from "../../learner/engine/graph/composites.ts";
import {
  fusedHead,
  fusedLinearAdapted,
  fusedNormAdapted,
  fusedSwigluJoined,
} from "../../learner/engine/graph/fused.ts";
import { Graph, type KernelSource, type Value } from "../../learner/engine/graph/graph.ts";
import { normKernels } from "../../learner/engine/graph/operators.ts";
import { add, cast, concat, mul, reshape, silu, slice } from "../../learner/engine/graph/primitives.ts";
import { matmul } from "../../learner/engine/graph/products.ts";
import type { Tensor } from "../../learner/engine/graph/tensor.ts";
import { type Compared, numbers, tensorOfNumbers } from "./kernel-numbers.ts";

/** What a kernel computes of some inputs, and what primitives do. Values are compared by name. */
interface Generated {
  /** kernels of our own that it launches */
  kernels: string[];
  feeds: Record<string, Tensor>;
  fused(of: (name: string, narrow?: boolean) => Value): Record<string, Value>;
  composed(of: (name: string) => Value): Record<string, Value>;
  /** values that are sums in float32, and as exact */
  exact?: string[];
}

const SCALE = 0.75;
const EPSILON = 1e-6;
const transposed = { transB: true };
/** scale h B of adapters whose B are columns of `up`, [rank, out]. */
const adapterOf = (h: Value, up: Value) => mul(matmul(h, up), SCALE);
const columns = (x: Value, from: number, count: number) => slice(x, 1, from, from + count);

function norm(rows: number, size: number, rank: number): Generated {
  const stride = size + 16 * Math.ceil(rank / 16);
  return {
    kernels: [normKernels(size)!.adapted],
    feeds: {
      x: tensorOfNumbers([rows, size], 1),
      product: tensorOfNumbers([rows, stride], 2),
      up: tensorOfNumbers([rank, size], 3),
      weight: tensorOfNumbers([size], 4),
    },
    fused(of) {
      const up = { up: of("up", true), scale: SCALE };
      const { total, normed } = fusedNormAdapted(of("x"), of("product", true), up, of("weight"), EPSILON);
      return { total, normed };
    },
    composed(of) {
      const product = of("product");
      const added = add(columns(product, 0, size), adapterOf(columns(product, size, rank), of("up")));
      const total = add(of("x"), added);
      return { total, normed: rmsNorm(total, of("weight"), EPSILON) };
    },
    exact: ["total"],
  };
}

function gates(rows: number, size: number, rank: number, places = [0, 1]): Generated {
  const stride = 2 * size + 16 * Math.ceil((2 * rank) / 16);
  return {
    kernels: ["swiglu_joined"],
    feeds: {
      product: tensorOfNumbers([rows, stride], 5, 2),
      ...(rank > 0 && { up: tensorOfNumbers([rank, 2 * size], 6) }),
    },
    fused(of) {
      const adapter = rank > 0 ? { up: of("up", true), scale: SCALE, places } : undefined;
      return { y: fusedSwigluJoined(of("product", true), size, adapter) };
    },
    composed(of) {
      const product = of("product");
      const [gate, up] = [0, 1].map((i) => {
        const y = columns(product, i * size, size);
        const h = () => columns(product, 2 * size + places[i]! * rank, rank);
        return rank > 0 ? add(y, adapterOf(h(), columns(of("up"), i * size, size))) : y;
      });
      return { y: mul(silu(gate!), up!) };
    },
  };
}

function linear(rows: number, size: number, rank: number, widths: number[], places: number[]): Generated {
  const out = widths.reduce((a, b) => a + b);
  const ends = widths.map((_, i) => widths.slice(0, i + 1).reduce((a, b) => a + b));
  const adapted = Math.max(...places) + 1;
  return {
    kernels: ["linear_adapted_few", "linear_adapted_many"],
    feeds: {
      x: tensorOfNumbers([rows, size], 7),
      stacked: tensorOfNumbers([out + adapted * rank, size], 8, 0.3),
      up: tensorOfNumbers([rank, out], 9, 0.3),
      bias: tensorOfNumbers([out], 10, 5),
    },
    fused(of) {
      const adapter = { up: of("up", true), scale: SCALE, ends, places };
      return { y: fusedLinearAdapted(of("x", true), of("stacked", true), adapter, of("bias")) };
    },
    composed(of) {
      const [x, up] = [of("x"), of("up")];
      const rowsFrom = (from: number, count: number) => slice(of("stacked"), 0, from, from + count);
      const parts = widths.map((width, i) => {
        const h = matmul(x, rowsFrom(out + places[i]! * rank, rank), transposed);
        const begin = ends[i]! - width;
        return add(matmul(x, rowsFrom(begin, width), transposed), adapterOf(h, columns(up, begin, width)));
      });
      return { y: add(parts.length > 1 ? concat(parts, 1) : parts[0]!, of("bias")) };
    },
  };
}

function head(rows: number, size: number, vocabulary: number): Generated {
  const x = tensorOfNumbers([rows, size], 11);
  // numbers that are no bfloat16
  for (const [i, more] of numbers(rows * size, 12, 1e-3).entries()) (x.data as Float32Array)[i]! += more;
  return {
    kernels: ["head_logits"],
    feeds: {
      x,
      scales: tensorOfNumbers([size], 13),
      inverse: tensorOfNumbers([rows], 14, 0.2),
      factors: tensorOfNumbers([rows], 15),
      weight: tensorOfNumbers([vocabulary, size], 16),
    },
    fused: (of) => ({ logits: fusedHead(of("x"), of("scales"), of("inverse"), of("factors"), of("weight", true)) }),
    composed(of) {
      const factor = reshape(mul(of("inverse"), of("factors")), [rows, 1]);
      return { logits: matmul(mul(mul(of("x"), of("scales")), factor), of("weight"), transposed) };
    },
    exact: ["logits"],
  };
}

const CASES: Record<string, () => Generated> = {
  "a norm behind an adapter, one row": () => norm(1, 64, 16),
  "norms behind an adapter of a small rank": () => norm(3, 1040, 3),
  "norms behind an adapter of a large rank": () => norm(2, 2064, 20),
  "norms of the largest size behind an adapter": () => norm(2, 8192, 8),
  "joined gates without an adapter": () => gates(5, 144, 0),
  "joined gates, one row": () => gates(1, 16, 16),
  "joined gates of two blocks, and of ranks that end within one": () => gates(19, 272, 20),
  "joined gates of which one has an adapter": () => gates(3, 128, 4, [0, 0]),
  "joined layers, one row": () => linear(1, 64, 16, [128, 64, 64], [0, 1, 2]),
  "joined layers, rows that fill their block": () => linear(64, 272, 3, [64, 64, 64], [0, 0, 1]),
  "joined layers, more rows": () => linear(131, 144, 40, [128, 64, 64], [2, 0, 1]),
  "one layer, few rows": () => linear(9, 80, 36, [64], [0]),
  "logits of one row": () => head(1, 80, 144),
  "logits of rows of two blocks": () => head(67, 272, 272),
};

function graphOf(kernels: KernelSource | undefined, it: Generated): ReturnType<Compared["graphOf"]> {
  const graph = new Graph("generated", { opset: 21, ...(kernels && { compute: "bfloat16" as const, kernels }) });
  const inputs = new Map(
    Object.entries(it.feeds).map(([name, { shape }]) => [name, graph.input(name, "float32", shape)] as const),
  );
  const of = (name: string, narrow = false) => (narrow ? cast(inputs.get(name)!, "bfloat16") : inputs.get(name)!);
  assert.ok(kernels === undefined || it.kernels.every((name) => kernels.has(name)), "the kernels can be loaded");
  const values = kernels ? it.fused(of) : it.composed(of);
  for (const [name, value] of Object.entries(values)) graph.output(name, cast(value, "float32"));
  return { graph, feeds: it.feeds };
}

export const GENERATED: Record<string, () => Compared> = Object.fromEntries(
  Object.entries(CASES).map(([name, make]) => [
    name,
    () => {
      const it = make();
      return { graphOf: (kernels) => graphOf(kernels, it), exact: it.exact };
    },
  ]),
);
