/**
 * The parts of a decoder's layer that generation computes by kernels of our own (graph/fused.ts) where they serve, and by ONNX Runtime's
 * operators elsewhere: norms with the residual sum, the gated unit, and the output layer.
 */
import { swiglu } from "../graph/composites.ts";
import { fusedHead, fusedNorm, fusedNormAdapted, fusedNormOutput, fusedSwigluJoined } from "../graph/fused.ts";
import { float, type Graph, type KernelSource, type Value } from "../graph/graph.ts";
import { isAligned, JOINED_COLUMNS, normKernels } from "../graph/operators.ts";
import { add, cast, mul, reshape, silu, split } from "../graph/primitives.ts";
import { matmul } from "../graph/products.ts";
import type { ModelConfig } from "./config.ts";
import type { weightsIn } from "./generate-weights.ts";

const KERNELS = ["swiglu_forward", "swiglu_joined", "linear_adapted_few", "linear_adapted_many", "head_logits"];

/** Returns whether the kernels serve a model of these sizes. */
export function servesLayers(kernels: KernelSource, config: ModelConfig): boolean {
  const { hiddenSize, intermediateSize, vocabSize, heads, keyValueHeads, headSize } = config;
  const norms = normKernels(hiddenSize);
  const names = [...KERNELS, norms?.forward, norms?.adapted];
  return (
    [hiddenSize, intermediateSize, vocabSize].every(isAligned) &&
    [heads * headSize, keyValueHeads * headSize].every((width) => width % JOINED_COLUMNS === 0) &&
    names.every((name) => name !== undefined && kernels.has(name))
  );
}

/** The residual stream, float32, and its norm; with `inverse` 1 / rms the norm is bfloat16. */
interface Normed {
  x: Value;
  normed: Value;
  inverse?: Value;
}

export function layersIn(graph: Graph, config: ModelConfig, weights: ReturnType<typeof weightsIn>) {
  const { normEpsilon, intermediateSize: size } = config;
  const fused = graph.model.kernels !== undefined;
  const epsilon = float(normEpsilon);
  const op = (type: string, inputs: Value[], shapes: Value["shape"][], attributes = {}, domain = "") => {
    const outputs = shapes.map((shape) => ({ dtype: inputs[0]!.dtype, shape }));
    return graph.op(type, inputs, attributes, outputs, domain);
  };
  /** A norm over the last axis, in the dtype of x. */
  const norm = (x: Value, name: string): Value => {
    const inputs = [x, cast(weights.scales(name), x.dtype)];
    return op("SimplifiedLayerNormalization", inputs, [x.shape], { epsilon, axis: -1 })[0]!;
  };
  /** The outputs of linear layers, one by one. */
  const parts = (outputs: Value[], sizes: number[]): Value[] =>
    outputs.length === sizes.length ? outputs : split(outputs[0]!, 1, sizes);
  const plusNorm = ({ total, ...rest }: ReturnType<typeof fusedNormOutput>): Normed => ({ x: total, ...rest });
  const fusedOutput = (x: Value, input: Value, path: string, name: string): Normed => {
    const stacked = weights.stacked([path]);
    if (!stacked)
      return plusNorm(fusedNormOutput(x, weights.linear(input, path)[0]!, weights.scales(name), normEpsilon));
    const bias = weights.bias(path); // the kernel adds none
    const product = matmul(input, stacked.matrix, { transB: true });
    return plusNorm(fusedNormAdapted(bias ? add(x, bias) : x, product, stacked, weights.scales(name), normEpsilon));
  };
  return {
    norm,
    parts,
    /** The norm of the embedding. */
    first: (x: Value, name: string): Value =>
      fused ? fusedNorm(x, undefined, weights.scales(name), normEpsilon)[1] : norm(x, name),
    /** x and the output of the layer `path` for `input`. @param wide the norm is read in float32 */
    plusOutput(x: Value, input: Value, path: string, { name, wide }: { name: string; wide: boolean }): Normed {
      if (fused && !wide) return fusedOutput(x, input, path, name);
      const inputs = [x, cast(weights.linear(input, path)[0]!, x.dtype), weights.scales(name)];
      const shapes = [x.shape, [], [], x.shape];
      const [normed, , , sum] = op("SkipSimplifiedLayerNormalization", inputs, shapes, { epsilon }, "com.microsoft");
      return { x: sum!, normed: normed! };
    },
    /** silu(gate) * up of the layers `path.gate_proj` and `path.up_proj` of x. */
    gated(x: Value, path: string): Value {
      const paths = [`${path}.gate_proj`, `${path}.up_proj`] as const;
      const stacked = weights.stacked(paths);
      if (stacked) return fusedSwigluJoined(matmul(x, stacked.matrix, { transB: true }), size, stacked);
      const outputs = weights.linear(x, ...paths);
      if (fused && outputs.length === 1) return fusedSwigluJoined(outputs[0]!, size);
      const [gate, up] = parts(outputs, [size, size]);
      return fused ? swiglu(gate!, up!) : mul(silu(gate!), up!);
    },
    /** Logits, float32 [rows, vocabSize], of the last norm with the scales `name`, times each row's factor. */
    logits({ x, normed, inverse }: Normed, name: string, factors: Value): Value {
      const matrix = weights.narrowHead();
      return matrix && inverse
        ? fusedHead(x, weights.scales(name), inverse, factors, matrix)
        : weights.head(mul(normed, reshape(factors, ["rows", 1])));
    },
  };
}
