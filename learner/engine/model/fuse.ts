import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { elementCount } from "./weights.ts";

/** Parameters as generation wants them: fewer and larger matrix products. Matrices are [out, in]. */
export interface FusedParameter {
  readonly name: string;
  readonly shape: readonly number[];
}

/** What `FusedWeights` holds and the generation graphs ask for. */
export function fusedParameters(config: ModelConfig): FusedParameter[] {
  const { hiddenSize, headSize, heads, keyValueHeads, intermediateSize } = config;
  const list: FusedParameter[] = [{ name: "embedding", shape: [config.vocabSize, hiddenSize] }];
  for (let layer = 0; layer < config.layers; layer++) {
    const add = (name: string, shape: number[]) => list.push({ name: `${layer}.${name}`, shape });
    add("norm1", [hiddenSize]);
    add("qkv", [(heads + 2 * keyValueHeads) * headSize, hiddenSize]);
    if (config.queryKeyValueBias) add("qkvBias", [(heads + 2 * keyValueHeads) * headSize]);
    if (config.queryKeyNorm) add("headNorms", [heads / keyValueHeads + 1, headSize]);
    add("out", [hiddenSize, heads * headSize]);
    if (config.outputBias) add("outBias", [hiddenSize]);
    add("norm2", [hiddenSize]);
    add("gateUp", [2 * intermediateSize, hiddenSize]);
    add("down", [hiddenSize, intermediateSize]);
  }
  list.push({ name: "norm", shape: [hiddenSize] });
  if (!config.tied) list.push({ name: "head", shape: [config.vocabSize, hiddenSize] });
  return list;
}

/**
 * The same weights with query, key and value, and gate and up, each in one matrix. Rows of `qkv` are grouped by
 * key-value head: its queries, its key, its value; queries are already divided by sqrt(headSize). Buffers are kept, so that a new
 * policy version costs one copy of those matrices (2 ms for 1M parameters); the other parameters are not copied at all.
 */
export class FusedWeights {
  readonly #config: ModelConfig;
  readonly #owned = new Map<string, Float32Array>();

  constructor(config: ModelConfig) {
    this.#config = config;
  }

  /** @throws ModelError `weights` when a parameter is missing or has another size */
  fuse(weights: ReadonlyMap<string, Float32Array>): Map<string, Float32Array> {
    const { layers, headSize, heads, keyValueHeads, hiddenSize } = this.#config;
    const take = (name: string): Float32Array => {
      const data = weights.get(name);
      if (data === undefined) throw new ModelError("weights", `parameter ${name} is missing`);
      return data;
    };
    const fused = new Map<string, Float32Array>();
    for (const { name, shape } of fusedParameters(this.#config)) {
      const direct = transformersName(name);
      const size = elementCount(shape);
      if (direct === undefined && !this.#owned.has(name)) this.#owned.set(name, new Float32Array(size));
      const data = direct === undefined ? this.#owned.get(name)! : take(direct);
      if (data.length !== size) {
        throw new ModelError(
          "weights",
          `parameter ${direct} has ${data.length} numbers; config.json asks for [${shape}]`,
        );
      }
      fused.set(name, data);
    }
    const queries = heads / keyValueHeads;
    const scale = 1 / Math.sqrt(headSize);
    const queryScale = this.#config.queryKeyNorm ? 1 : scale; // a norm would undo it, so it goes into the norm's weights
    for (let layer = 0; layer < layers; layer++) {
      for (const [target, suffix, width] of [
        ["qkv", "weight", hiddenSize],
        ["qkvBias", "bias", 1],
      ] as const) {
        const data = fused.get(`${layer}.${target}`);
        if (data === undefined) continue;
        const block = headSize * width; // one head
        const [query, key, value] = ["q", "k", "v"].map((p) =>
          take(`model.layers.${layer}.self_attn.${p}_proj.${suffix}`),
        );
        for (let head = 0, at = 0; head < keyValueHeads; head++) {
          for (const number of query.subarray(head * queries * block, (head + 1) * queries * block)) {
            data[at++] = number * queryScale;
          }
          data.set(key.subarray(head * block, (head + 1) * block), at);
          data.set(value.subarray(head * block, (head + 1) * block), at + block);
          at += 2 * block;
        }
      }
      const headNorms = fused.get(`${layer}.headNorms`);
      if (headNorms !== undefined) {
        const query = take(`model.layers.${layer}.self_attn.q_norm.weight`).map((number) => number * scale);
        for (let head = 0; head < queries; head++) headNorms.set(query, head * headSize);
        headNorms.set(take(`model.layers.${layer}.self_attn.k_norm.weight`), queries * headSize);
      }
      const gate = take(`model.layers.${layer}.mlp.gate_proj.weight`);
      const gateUp = fused.get(`${layer}.gateUp`)!;
      gateUp.set(gate);
      gateUp.set(take(`model.layers.${layer}.mlp.up_proj.weight`), gate.length);
    }
    return fused;
  }
}

/** The transformers name of a parameter that is used as it is. */
export function transformersName(name: string): string | undefined {
  const [layer, part] = name.split(".");
  switch (part ?? name) {
    case "embedding":
      return "model.embed_tokens.weight";
    case "norm":
      return "model.norm.weight";
    case "head":
      return "lm_head.weight";
    case "norm1":
      return `model.layers.${layer}.input_layernorm.weight`;
    case "norm2":
      return `model.layers.${layer}.post_attention_layernorm.weight`;
    case "out":
      return `model.layers.${layer}.self_attn.o_proj.weight`;
    case "outBias":
      return `model.layers.${layer}.self_attn.o_proj.bias`;
    case "down":
      return `model.layers.${layer}.mlp.down_proj.weight`;
    default:
      return undefined;
  }
}
