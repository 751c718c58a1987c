import { sameShape } from "../graph/shapes.ts";
import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { uniforms } from "./random.ts";

/** A parameter with transformers' name. Matrices are [out, in]. */
interface Parameter {
  readonly name: string;
  readonly shape: readonly number[];
  readonly kind: "embedding" | "matrix" | "bias" | "norm";
}

export interface Tensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** Names of the two matrices that are one if `tied`. */
export const EMBEDDING = "model.embed_tokens.weight";
export const OUTPUT_LAYER = "lm_head.weight";

/** All parameters of a decoder, in the order in which they are used; a tied output layer is not listed. */
export function parameters(config: ModelConfig): Parameter[] {
  const { hiddenSize, intermediateSize, headSize } = config;
  const querySize = config.heads * headSize;
  const keyValueSize = config.keyValueHeads * headSize;
  const logits = [config.vocabSize, hiddenSize];
  const list: Parameter[] = [{ name: EMBEDDING, shape: logits, kind: "embedding" }];
  for (let layer = 0; layer < config.layers; layer++) {
    const add = (name: string, shape: number[], kind: Parameter["kind"]) =>
      list.push({ name: `model.layers.${layer}.${name}`, shape, kind });
    add("input_layernorm.weight", [hiddenSize], "norm");
    for (const [projection, size] of [
      ["q_proj", querySize],
      ["k_proj", keyValueSize],
      ["v_proj", keyValueSize],
    ] as const) {
      add(`self_attn.${projection}.weight`, [size, hiddenSize], "matrix");
      if (config.queryKeyValueBias) add(`self_attn.${projection}.bias`, [size], "bias");
    }
    if (config.queryKeyNorm) {
      add("self_attn.q_norm.weight", [headSize], "norm");
      add("self_attn.k_norm.weight", [headSize], "norm");
    }
    add("self_attn.o_proj.weight", [hiddenSize, querySize], "matrix");
    if (config.outputBias) add("self_attn.o_proj.bias", [hiddenSize], "bias");
    add("post_attention_layernorm.weight", [hiddenSize], "norm");
    add("mlp.gate_proj.weight", [intermediateSize, hiddenSize], "matrix");
    add("mlp.up_proj.weight", [intermediateSize, hiddenSize], "matrix");
    add("mlp.down_proj.weight", [hiddenSize, intermediateSize], "matrix");
  }
  list.push({ name: "model.norm.weight", shape: [hiddenSize], kind: "norm" });
  if (!config.tied) list.push({ name: OUTPUT_LAYER, shape: logits, kind: "matrix" });
  return list;
}

export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/**
 * Fresh weights as transformers makes them: normal with standard deviation `initializer_range`, biases 0, norms 1.
 * Every parameter has a random stream of its own, so adding a layer does not change the others.
 */
export function initialWeights(config: ModelConfig, seed: number): Map<string, Float32Array> {
  const weights = new Map<string, Float32Array>();
  for (const { name, shape, kind } of parameters(config)) {
    const data = new Float32Array(elementCount(shape));
    if (kind === "norm") data.fill(1);
    else if (kind !== "bias") fillNormal(data, config.initializerRange, uniforms(seed, "weights", name));
    weights.set(name, data);
  }
  return weights;
}

/** Box-Muller: two normal numbers from two uniform ones. */
function fillNormal(data: Float32Array, standardDeviation: number, next: () => number): void {
  for (let i = 0; i < data.length; i += 2) {
    const radius = standardDeviation * Math.sqrt(-2 * Math.log(1 - next())); // 1 - u is never 0
    const angle = 2 * Math.PI * next();
    data[i] = radius * Math.cos(angle);
    if (i + 1 < data.length) data[i + 1] = radius * Math.sin(angle);
  }
}

/**
 * Throws ModelError `weights` naming the first parameter that is missing, unknown, or of another shape than `config` asks for. A tied
 * output layer and the old rotary buffers may be there too; they are not used. Whether such an output layer equals the embedding is
 * for the caller to check.
 */
export function checkShapes(
  config: ModelConfig,
  tensors: ReadonlyMap<string, { readonly shape: readonly number[] }>,
  source: string,
): void {
  const known = new Set<string>();
  for (const { name, shape } of parameters(config)) {
    const tensor = tensors.get(name);
    if (tensor === undefined)
      throw new ModelError("weights", `${source}: parameter ${name} is missing; config.json asks for [${shape}]`);
    if (!sameShape(tensor.shape, shape))
      throw new ModelError("weights", `${source}: ${name} is [${tensor.shape}], but config.json asks for [${shape}]`);
    known.add(name);
  }
  for (const name of tensors.keys()) {
    const unused = (config.tied && name === OUTPUT_LAYER) || name.endsWith("rotary_emb.inv_freq");
    if (!known.has(name) && !unused)
      throw new ModelError("weights", `${source}: unknown parameter ${name}; it does not fit config.json`);
  }
}

/** @throws ModelError `weights` naming the first number that is not finite */
export function checkFinite(name: string, data: Float32Array, source: string, from = 0): void {
  const at = data.findIndex((value) => !Number.isFinite(value));
  if (at < 0) return;
  const where = `${data[at]} at index ${from + at}`;
  throw new ModelError("weights", `${source}: ${name} holds ${where}; the weights are damaged`);
}
