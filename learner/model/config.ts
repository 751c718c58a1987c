import { ModelError } from "./errors.ts";

/**
 * A decoder of the Qwen2 family: RMSNorm, rotary positions, grouped-query attention, SiLU-gated MLP. Llama is the same
 * without biases. Names on the right are those of Hugging Face's `config.json`.
 */
export interface ModelConfig {
  readonly modelType: "qwen2" | "llama"; // model_type
  readonly vocabSize: number; // vocab_size
  readonly hiddenSize: number; // hidden_size
  readonly intermediateSize: number; // intermediate_size
  readonly layers: number; // num_hidden_layers
  readonly heads: number; // num_attention_heads
  readonly keyValueHeads: number; // num_key_value_heads
  readonly headSize: number; // head_dim, else hidden_size / num_attention_heads
  readonly normEpsilon: number; // rms_norm_eps
  readonly ropeTheta: number; // rope_theta, in newer files rope_parameters.rope_theta
  readonly tied: boolean; // tie_word_embeddings: the output layer is the embedding
  readonly queryKeyValueBias: boolean; // always true in qwen2, always false in llama
  readonly maxPositions: number; // max_position_embeddings
  readonly initializerRange: number; // initializer_range: standard deviation of random weights
}

type Json = Record<string, unknown>;

/**
 * Reads a parsed `config.json`. Whatever would make our decoder compute something else than transformers does is
 * refused with the field's name: another architecture, another activation, scaled rotary positions, sliding windows,
 * quantised weights.
 *
 * @param source what to call the file in errors
 * @throws ModelError `config`
 */
export function parseConfig(json: unknown, source = "config.json"): ModelConfig {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new ModelError("config", `${source}: expected a JSON object, got ${describe(json)}`);
  }
  const file = json as Json;
  const refuse = (field: string, value: unknown, remedy: string): never => {
    throw new ModelError("config", `${source}: ${field} is ${describe(value)}; ${remedy}`);
  };
  const count = (field: string, fallback?: number): number => {
    const value = file[field] ?? fallback;
    return Number.isSafeInteger(value) && (value as number) > 0
      ? (value as number)
      : refuse(field, file[field], "expected a positive whole number");
  };
  const positive = (field: string, value: unknown): number =>
    typeof value === "number" && Number.isFinite(value) && value > 0
      ? value
      : refuse(field, value, "expected a positive number");

  const modelType = file.model_type as ModelConfig["modelType"];
  if (modelType !== "qwen2" && modelType !== "llama") {
    refuse("model_type", file.model_type, "supported are qwen2 and llama");
  }
  for (const [field, allowed, remedy] of NEUTRAL_FIELDS) {
    const value = file[field];
    if (value !== undefined && value !== null && !allowed.includes(value)) refuse(field, value, remedy);
  }
  if (file.quantization_config !== undefined && file.quantization_config !== null) {
    refuse("quantization_config", file.quantization_config, "use the unquantised model");
  }
  if (modelType === "llama" && file.attention_bias === true) {
    refuse("attention_bias", true, "biases are supported for qwen2 only");
  }
  if (Array.isArray(file.layer_types)) {
    const other = file.layer_types.find((type) => type !== "full_attention");
    if (other !== undefined) refuse("layer_types", other, "only full_attention is supported");
  }

  const hiddenSize = count("hidden_size");
  const heads = count("num_attention_heads");
  const keyValueHeads = count("num_key_value_heads", heads);
  const headSize = count("head_dim", hiddenSize / heads);
  if (heads % keyValueHeads !== 0) {
    refuse("num_key_value_heads", keyValueHeads, `it must divide num_attention_heads, which is ${heads}`);
  }
  if (headSize % 2 !== 0) refuse("head_dim", headSize, "rotary positions need an even size");

  return {
    modelType,
    vocabSize: count("vocab_size"),
    hiddenSize,
    intermediateSize: count("intermediate_size"),
    layers: count("num_hidden_layers"),
    heads,
    keyValueHeads,
    headSize,
    normEpsilon: positive("rms_norm_eps", file.rms_norm_eps ?? 1e-6),
    ropeTheta: ropeTheta(file, refuse, positive),
    tied: file.tie_word_embeddings === true,
    queryKeyValueBias: modelType === "qwen2",
    maxPositions: count("max_position_embeddings", modelType === "qwen2" ? 32768 : 2048),
    initializerRange: positive("initializer_range", file.initializer_range ?? 0.02),
  };
}

/** Fields that may be present when they say what this decoder does anyway. */
const NEUTRAL_FIELDS: readonly [field: string, allowed: readonly unknown[], remedy: string][] = [
  ["hidden_act", ["silu"], "only silu is supported"],
  ["use_sliding_window", [false], "only full attention is supported, set it to false"],
  ["attention_dropout", [0], "only 0 is supported"],
  ["mlp_bias", [false], "only false is supported"],
  ["pretraining_tp", [1], "only 1 is supported"],
  ["attn_logit_softcapping", [], "it is not supported"],
  ["partial_rotary_factor", [1], "only 1 is supported"],
];

function ropeTheta(
  file: Json,
  refuse: (field: string, value: unknown, remedy: string) => never,
  positive: (field: string, value: unknown) => number,
): number {
  for (const field of ["rope_scaling", "rope_parameters"]) {
    const rope = file[field];
    if (rope === undefined || rope === null) continue;
    if (typeof rope !== "object") refuse(field, rope, "expected an object");
    const type = (rope as Json).rope_type ?? (rope as Json).type ?? "default";
    if (type !== "default") refuse(`${field}.rope_type`, type, "only default, unscaled rotary positions are supported");
    if ((rope as Json).rope_theta !== undefined) return positive(`${field}.rope_theta`, (rope as Json).rope_theta);
  }
  return positive("rope_theta", file.rope_theta ?? 10000);
}

function describe(value: unknown): string {
  const text = JSON.stringify(value) ?? "missing";
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** The `config.json` that transformers reads back as the same model; `extra` carries fields such as `eos_token_id`. */
export function configJson(config: ModelConfig, extra: Json = {}): Json {
  return {
    architectures: [config.modelType === "qwen2" ? "Qwen2ForCausalLM" : "LlamaForCausalLM"],
    model_type: config.modelType,
    vocab_size: config.vocabSize,
    hidden_size: config.hiddenSize,
    intermediate_size: config.intermediateSize,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.keyValueHeads,
    head_dim: config.headSize,
    hidden_act: "silu",
    rms_norm_eps: config.normEpsilon,
    rope_theta: config.ropeTheta, // transformers 4
    rope_parameters: { rope_type: "default", rope_theta: config.ropeTheta }, // transformers 5
    tie_word_embeddings: config.tied,
    max_position_embeddings: config.maxPositions,
    initializer_range: config.initializerRange,
    attention_dropout: 0,
    ...(config.modelType === "qwen2" ? { use_sliding_window: false } : { attention_bias: false, mlp_bias: false }),
    dtype: "float32",
    ...extra,
  };
}
