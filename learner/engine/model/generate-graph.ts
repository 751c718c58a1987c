/**
 * The graph of generation. It reads the next tokens of some slots and appends their keys and values to the KV cache of each slot in
 * place: past and present are the same memory. With one token a slot it decodes; with several tokens it reads prompts (prefill).
 */

import type { Compute } from "../graph/graph.ts";
import { float, Graph, type Shape, type Value } from "../graph/graph.ts";
import { cast, concat, mul, pad, reshape, slice } from "../graph/primitives.ts";
import type { DType } from "../graph/tensor.ts";
import type { ModelConfig } from "./config.ts";
import type { GraphWeights } from "./generate-weights.ts";
import { sampleFromAll, sampleGreedy, sampleMixed } from "./sample.ts";

/** How the rows of a step sample: all take the most probable token; all draw from the whole vocabulary; or each row has its own way, nucleus sampling included. */
export type Sampling = "greedy" | "all" | "mixed";

/** Makes the graph's weights, which are inputs or point into files. */
export type WeightsOf = (graph: Graph) => GraphWeights;

export interface GraphOptions {
  /** left out: nothing is sampled, the tokens are a prompt's */
  readonly sampling: Sampling | undefined;
  readonly compute: Compute;
  /** of keys and values */
  readonly cache: DType;
}

/** GroupQueryAttention rotates heads of a multiple of 16 numbers only; other heads are padded with zeros. */
const HEAD_MULTIPLE = 16;
/** The size that heads have in the cache and in the tables of positions. */
export const cachedHeadSize = ({ headSize }: ModelConfig): number =>
  Math.ceil(headSize / HEAD_MULTIPLE) * HEAD_MULTIPLE;

const MICROSOFT = "com.microsoft";

/**
 * | input | |
 * | --- | --- |
 * | tokens | int32 [slots, length] |
 * | last | int32 [slots], each slot's last position when these tokens are in the cache |
 * | total | int32 [], the positions that attention makes room for: `length` where caches are empty, else as many as the longest slot has, or more |
 * | cosines, sines | [positions, cachedHeadSize / 2] in the cache's dtype |
 * | keys.N, values.N | [slots, keyValueHeads, positions, cachedHeadSize] for each layer |
 * | uniforms, inverseTemperatures, topPs | float32 [slots], [slots, 1], [slots], where `sampling` needs them: sample.ts |
 *
 * Outputs: `newKeys.N` and `newValues.N`, to be bound to the memory of `keys.N` and `values.N`; with `sampling` also `drawn` float32
 * [2, slots], the next tokens and their probabilities in one tensor: one copy from a device. A vocabulary is far below 2^24 tokens.
 */
export function generationGraph(config: ModelConfig, weightsOf: WeightsOf, options: GraphOptions): Graph {
  const { sampling, compute, cache } = options;
  const graph = new Graph(sampling ? "decode" : "prefill", { opset: 21, compute });
  const { headSize, heads, keyValueHeads, layers } = config;
  const [SLOTS, LENGTH] = ["slots", "length"];
  const wide = cachedHeadSize(config);
  const epsilon = float(config.normEpsilon);
  const tokens = graph.input("tokens", "int32", [SLOTS, LENGTH]);
  const last = graph.input("last", "int32", [SLOTS]);
  const total = graph.input("total", "int32", []);
  const positions = ["cosines", "sines"].map((name) => graph.input(name, cache, ["positions", wide / 2]));
  const weights = weightsOf(graph);
  const ops = (type: string, inputs: Value[], shapes: Shape[], attributes = {}, domain = "") => {
    const outputs = shapes.map((shape) => ({ dtype: inputs[0]!.dtype, shape }));
    return graph.op(type, inputs, attributes, outputs, domain);
  };
  const op = (type: string, inputs: Value[], shape: Shape, attributes = {}, domain = "") =>
    ops(type, inputs, [shape], attributes, domain)[0]!;
  const reshaped = (x: Value, sizes: number[], shape: Shape) =>
    op("Reshape", [x, graph.constant(sizes, "int64")], shape);
  /** The last axis in parts. A reshape with the input's own first sizes needs no node that computes them. */
  const parted = (x: Value, ...sizes: number[]) => reshaped(x, [0, 0, ...sizes], [SLOTS, LENGTH, ...sizes]);
  /** Linear layers of one input: an output for each, or where they are joined one for all. There rows go in; slots or length is 1. */
  const linear = (x: Value, ...paths: string[]): Value[] => {
    if (!weights.joins) return weights.linear(x, ...paths);
    const size = x.shape[2] as number;
    const [y] = weights.linear(reshaped(x, [-1, size], ["rows", size]), ...paths);
    const out = y!.shape[1] as number;
    return [reshaped(y!, [...(sampling ? [-1, 1] : [1, -1]), out], [SLOTS, LENGTH, out])];
  };
  const split = (x: Value, sizes: number[]) => {
    const shapes = sizes.map((size) => [SLOTS, LENGTH, size]);
    return ops("Split", [x, graph.constant(sizes, "int64")], shapes, { axis: -1 });
  };
  const norm = (x: Value, name: string) =>
    op("SimplifiedLayerNormalization", [x, cast(weights.vector(name)!, x.dtype)], x.shape, { epsilon, axis: -1 });
  /** x + delta, and its norm */
  const addNorm = (x: Value, delta: Value, name: string): [sum: Value, normed: Value] => {
    const inputs = [x, cast(delta, x.dtype), weights.vector(name)!];
    const shapes = [x.shape, [], [], x.shape];
    const [normed, , , sum] = ops("SkipSimplifiedLayerNormalization", inputs, shapes, { epsilon }, MICROSOFT);
    return [sum!, normed!];
  };
  /** The heads of a projection as attention takes them. Halves of a head are filled by themselves, as position turns one with the other. */
  const headsOf = (x: Value, count: number, normName?: string): Value => {
    let each = x;
    if (normName !== undefined && config.queryKeyNorm) each = norm(parted(x, count, headSize), normName);
    if (wide !== headSize) {
      const halves = cast(parted(each, 2 * count, headSize / 2), "float32"); // CUDA fills no bfloat16
      each = pad(halves, 3, 0, (wide - headSize) / 2);
    }
    return cast(each === x ? x : parted(each, count * wide), cache);
  };
  const attention = (x: Value, layer: number): Value => {
    const at = `model.layers.${layer}.self_attn`;
    const counts = [heads, keyValueHeads, keyValueHeads];
    let parts: (Value | null)[] = linear(x, ...["q_proj", "k_proj", "v_proj"].map((name) => `${at}.${name}`));
    const joined = parts.length === 1 ? parts[0]! : undefined;
    if (joined && wide === headSize && !config.queryKeyNorm) {
      parts = [cast(joined, cache), null, null]; // attention takes them as they are
    } else {
      const each = joined
        ? split(
            joined,
            counts.map((count) => count * headSize),
          )
        : (parts as Value[]);
      const norms = [`${at}.q_norm.weight`, `${at}.k_norm.weight`];
      parts = each.map((part, i) => headsOf(part, counts[i]!, norms[i]));
    }
    const cached = { dtype: cache, shape: [SLOTS, keyValueHeads, "positions", wide] };
    const past = ["keys", "values"].map((name) => graph.input(`${name}.${layer}`, cache, cached.shape));
    const [mixed, keys, values] = graph.op(
      "GroupQueryAttention",
      [...parts, ...past, last, total, ...positions],
      { num_heads: heads, kv_num_heads: keyValueHeads, do_rotary: 1, scale: float(1 / Math.sqrt(headSize)) },
      [{ dtype: cache, shape: [SLOTS, LENGTH, heads * wide] }, cached, cached],
      MICROSOFT,
    );
    graph.output(`newKeys.${layer}`, keys!);
    graph.output(`newValues.${layer}`, values!);
    if (wide === headSize) return cast(mixed!, weights.dtype);
    const halves = parted(cast(mixed!, weights.dtype), 2 * heads, wide / 2);
    return parted(slice(halves, 3, 0, headSize / 2), heads * headSize);
  };
  const mlp = (x: Value, layer: number): Value => {
    const at = `model.layers.${layer}.mlp`;
    const joined = linear(x, `${at}.gate_proj`, `${at}.up_proj`);
    const { intermediateSize: size } = config;
    const [gate, up] = joined.length === 1 ? split(joined[0]!, [size, size]) : joined;
    const activated = op("QuickGelu", [gate!], gate!.shape, { alpha: float(1) }, MICROSOFT); // x sigmoid(x)
    return linear(mul(activated, up!), `${at}.down_proj`)[0]!;
  };

  let x = weights.embed(tokens);
  let normed = norm(x, "model.layers.0.input_layernorm.weight");
  for (let layer = 0; layer < layers; layer++) {
    const mixed = attention(normed, layer);
    if (layer === layers - 1 && !sampling) return graph;
    const [delta] = linear(mixed, `model.layers.${layer}.self_attn.o_proj`);
    [x, normed] = addNorm(x, delta!, `model.layers.${layer}.post_attention_layernorm.weight`);
    const after = layer + 1 < layers ? `model.layers.${layer + 1}.input_layernorm.weight` : "model.norm.weight";
    [x, normed] = addNorm(x, mlp(normed, layer), after);
  }
  const rows = reshaped(normed, [-1, config.hiddenSize], [SLOTS, config.hiddenSize]);
  const ofRows = (name: string, ...columns: number[]) => graph.input(name, "float32", [SLOTS, ...columns]);
  const logits = weights.head(mul(rows, ofRows("inverseTemperatures", 1)));
  const { token, probability } =
    sampling === "greedy"
      ? sampleGreedy(logits)
      : sampling === "all"
        ? sampleFromAll(logits, ofRows("uniforms"))
        : sampleMixed(logits, ofRows("uniforms"), ofRows("topPs"));
  const drawn = [cast(token, "float32"), probability].map((each) => reshape(each, [1, SLOTS]));
  graph.output("drawn", concat(drawn, 0));
  return graph;
}
