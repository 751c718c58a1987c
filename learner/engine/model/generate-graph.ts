/**
 * The graph of generation. It reads the next tokens of some slots and appends their keys and values to the KV cache of each slot in
 * place: past and present are the same memory. With one token a slot it decodes; with several tokens it reads prompts (prefill).
 */
import { type Compute, float, Graph, type KernelSource, type Shape, type Value } from "../graph/graph.ts";
import { cast, concat, pad, reshape, slice } from "../graph/primitives.ts";
import type { DType } from "../graph/tensor.ts";
import type { ModelConfig } from "./config.ts";
import { layersIn } from "./generate-layers.ts";
import { type GeneratorWeights, type WeightOptions, weightsIn } from "./generate-weights.ts";
import { sampleFromAll, sampleGreedy, sampleMixed } from "./sample.ts";

/** Sampling of a step's rows: all take the most probable token; all draw from the whole vocabulary; or each row has its own method, nucleus sampling included. */
export type Sampling = "greedy" | "all" | "mixed";

export interface GraphOptions extends WeightOptions {
  /** left out: nothing is sampled, the tokens are a prompt's */
  readonly sampling: Sampling | undefined;
  readonly compute: Compute;
  /** dtype of keys and values */
  readonly cache: DType;
  /** our own kernels, which serve this model; left out: none */
  readonly kernels?: KernelSource | undefined;
}

/** GroupQueryAttention rotates heads of a multiple of 16 numbers only; other heads are padded with zeros. */
const HEAD_MULTIPLE = 16;
/** Returns the size of heads in the cache and in the tables of positions. */
export const cachedHeadSize = ({ headSize }: ModelConfig): number =>
  Math.ceil(headSize / HEAD_MULTIPLE) * HEAD_MULTIPLE;
/** Numbers of a token's keys, or values, in a layer. */
export const tokenNumbers = (config: ModelConfig): number => config.keyValueHeads * cachedHeadSize(config);

const MICROSOFT = "com.microsoft";
/** Names of a layer's cache among a graph's inputs and outputs. */
export const FROM = ["keys", "values"] as const;
export const TO = ["newKeys", "newValues"] as const;

/**
 * | input | |
 * | --- | --- |
 * | tokens | int32 [rows]: the next token of each slot, or the next ones of a single slot |
 * | last | int32 [slots], each slot's last position when these tokens are in the cache |
 * | total | int32 [], the positions that attention makes room for: `rows` where the cache is empty, else as many as the longest slot has, or more |
 * | cosines, sines | [positions, cachedHeadSize / 2] in the cache's dtype |
 * | keys.N, values.N | [slots, keyValueHeads, positions, cachedHeadSize] for each layer |
 * | uniforms, inverseTemperatures, topPs | float32 [rows], where `sampling` needs them: sample.ts |
 *
 * Outputs: `newKeys.N` and `newValues.N`, to be bound to the memory of `keys.N` and `values.N`; with `sampling` also `drawn` float32
 * [2, rows], the next tokens and their probabilities in one tensor: one copy from a device. A vocabulary is far below 2^24 tokens.
 */
export function generationGraph(config: ModelConfig, from: GeneratorWeights, options: GraphOptions): Graph {
  const { sampling, compute, cache, kernels } = options;
  const graph = new Graph(sampling ? "decode" : "prefill", { opset: 21, compute, kernels });
  const { headSize, heads, keyValueHeads, layers } = config;
  const wide = cachedHeadSize(config);
  const [slots, length]: Shape = sampling ? ["rows", 1] : [1, "rows"];
  const tokens = graph.input("tokens", "int32", ["rows"]);
  const last = graph.input("last", "int32", [slots!]);
  const total = graph.input("total", "int32", []);
  const positions = ["cosines", "sines"].map((name) => graph.input(name, cache, ["positions", wide / 2]));
  const weights = weightsIn(graph, config, from, options);

  const layer = layersIn(graph, config, weights);
  const inSlots = (x: Value, size: number) => reshape(x, [slots!, length!, size]);
  /** Returns the heads of a projection for attention. Each half of a head is padded separately, because rotation pairs the halves. */
  const headsOf = (x: Value, count: number, normName?: string): Value => {
    let each = x;
    if (normName !== undefined && config.queryKeyNorm)
      each = layer.norm(reshape(x, ["rows", count, headSize]), normName);
    if (wide !== headSize) {
      const halves = cast(reshape(each, ["rows", 2 * count, headSize / 2]), "float32"); // CUDA fills no bfloat16
      each = pad(halves, 2, 0, (wide - headSize) / 2);
    }
    return cast(inSlots(each, count * wide), cache);
  };
  const attention = (x: Value, number: number): Value => {
    const at = `model.layers.${number}.self_attn`;
    const projected = weights.linear(x, `${at}.q_proj`, `${at}.k_proj`, `${at}.v_proj`);
    const counts = [heads, keyValueHeads, keyValueHeads];
    const sizes = counts.map((count) => count * headSize);
    const norms = [`${at}.q_norm.weight`, `${at}.k_norm.weight`];
    const isPlain = wide === headSize && !config.queryKeyNorm; // attention takes joined projections unchanged
    const parts: (Value | null)[] =
      projected.length === 1 && isPlain
        ? [cast(inSlots(projected[0]!, projected[0]!.shape[1] as number), cache), null, null]
        : layer.parts(projected, sizes).map((part, i) => headsOf(part, counts[i]!, norms[i]));
    const cached = { dtype: cache, shape: [slots!, keyValueHeads, "positions", wide] };
    const past = FROM.map((name) => graph.input(`${name}.${number}`, cache, cached.shape));
    const [mixed, ...present] = graph.op(
      "GroupQueryAttention",
      [...parts, ...past, last, total, ...positions],
      { num_heads: heads, kv_num_heads: keyValueHeads, do_rotary: 1, scale: float(1 / Math.sqrt(headSize)) },
      [{ dtype: cache, shape: [slots!, length!, heads * wide] }, cached, cached],
      MICROSOFT,
    );
    for (const [i, name] of TO.entries()) graph.output(`${name}.${number}`, present[i]!);
    const rows = cast(reshape(mixed!, ["rows", heads * wide]), compute);
    if (wide === headSize) return rows;
    const halves = slice(reshape(rows, ["rows", 2 * heads, wide / 2]), 2, 0, headSize / 2);
    return reshape(halves, ["rows", heads * headSize]);
  };
  let x = weights.embed(tokens);
  let normed = layer.first(x, "model.layers.0.input_layernorm.weight");
  const factors = () => ofRows("inverseTemperatures");
  const ofRows = (name: string) => graph.input(name, "float32", ["rows"]);
  let logits: Value | undefined;
  for (let number = 0; number < layers; number++) {
    const at = `model.layers.${number}`;
    const isLast = number === layers - 1;
    const mixed = attention(normed, number);
    if (isLast && !sampling) return graph;
    const between = { name: `${at}.post_attention_layernorm.weight`, wide: false };
    ({ x, normed } = layer.plusOutput(x, mixed, `${at}.self_attn.o_proj`, between));
    const name = isLast ? "model.norm.weight" : `model.layers.${number + 1}.input_layernorm.weight`;
    const wide = isLast && weights.narrowHead() === undefined;
    const after = layer.plusOutput(x, layer.gated(normed, `${at}.mlp`), `${at}.mlp.down_proj`, { name, wide });
    ({ x, normed } = after);
    if (isLast) logits = layer.logits(after, name, factors());
  }
  const { token, probability } =
    sampling === "greedy"
      ? sampleGreedy(logits!)
      : sampling === "all"
        ? sampleFromAll(logits!, ofRows("uniforms"))
        : sampleMixed(logits!, ofRows("uniforms"), ofRows("topPs"));
  const drawn = [cast(token, "float32"), probability].map((each) => reshape(each, [1, "rows"]));
  graph.output("drawn", concat(drawn, 0));
  return graph;
}

/** Copies a slot's part of each layer's keys and values to another slot. */
export function copyGraph({ layers }: ModelConfig, cache: DType): Graph {
  const graph = new Graph("copy_slot");
  const shape = ["slots", "heads", "positions", "size"];
  for (let layer = 0; layer < layers; layer++)
    for (const [i, from] of FROM.entries())
      graph.output(`${TO[i]}.${layer}`, graph.input(`${from}.${layer}`, cache, shape));
  return graph;
}
