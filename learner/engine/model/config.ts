import { ConfigFile } from "./config-file.ts";
import { parseRope, ropeJson, type ScaledRope } from "./rope.ts";

/**
 * A decoder of the Qwen2, Qwen3 or Llama family: RMSNorm, rotary positions, grouped-query attention, SiLU-gated MLP.
 * Names on the right are the fields of Hugging Face's `config.json`.
 */
export interface ModelConfig {
  readonly modelType: ModelType; // model_type
  readonly vocabSize: number; // vocab_size
  readonly hiddenSize: number; // hidden_size
  readonly intermediateSize: number; // intermediate_size
  readonly layers: number; // num_hidden_layers
  readonly heads: number; // num_attention_heads
  readonly keyValueHeads: number; // num_key_value_heads
  readonly headSize: number; // head_dim, else 128 in qwen3 and hidden_size / num_attention_heads in the others
  readonly normEpsilon: number; // rms_norm_eps
  readonly ropeTheta: number; // rope_theta, in newer files rope_parameters.rope_theta
  readonly rope?: ScaledRope; // rope_scaling, in newer files rope_parameters; left out: unscaled
  readonly tied: boolean; // tie_word_embeddings: the output layer is the embedding
  readonly queryKeyValueBias: boolean; // always true in qwen2, attention_bias in the others
  readonly outputBias?: boolean; // bias of o_proj: never in qwen2, attention_bias in the others
  readonly queryKeyNorm?: boolean; // an RMSNorm over each head's query and key: qwen3
  readonly maxPositions: number; // max_position_embeddings, or the number that rope scaling stretches the original positions to
  readonly initializerRange: number; // initializer_range: standard deviation of random weights
}

const ARCHITECTURES = { qwen2: "Qwen2ForCausalLM", qwen3: "Qwen3ForCausalLM", llama: "LlamaForCausalLM" } as const;
/** A damaged config.json must not let us list parameters for ever; the largest models have some 130 layers. */
const MAX_LAYERS = 1000;
type ModelType = keyof typeof ARCHITECTURES;

/**
 * Reads a parsed `config.json`. A setting with which our decoder would differ from transformers is
 * refused with the field's name: another architecture, another activation, sliding windows, quantised weights.
 *
 * @param source name of the file in errors
 * @throws ModelError `config`
 */
export function parseConfig(json: unknown, source = "config.json"): ModelConfig {
  const file = new ConfigFile(json, source);
  const modelType = file.value("model_type") as ModelType;
  if (typeof modelType !== "string" || !Object.hasOwn(ARCHITECTURES, modelType)) {
    file.refuse("model_type", "supported are qwen2, qwen3 and llama");
  }
  const architectures = file.value("architectures");
  if (Array.isArray(architectures) && architectures.length > 0 && !architectures.includes(ARCHITECTURES[modelType])) {
    file.refuse("architectures", `for model_type ${modelType} only ${ARCHITECTURES[modelType]} is supported`);
  }
  for (const [field, allowed, remedy] of NEUTRAL_FIELDS) file.allow(field, allowed, remedy);
  refuseSlidingWindow(file);

  const hiddenSize = file.count("hidden_size");
  const heads = file.count("num_attention_heads");
  const keyValueHeads = file.count("num_key_value_heads", heads);
  const headSize = file.count("head_dim", modelType === "qwen3" ? 128 : hiddenSize / heads);
  if (heads % keyValueHeads !== 0) {
    file.refuse("num_key_value_heads", `it must divide num_attention_heads, which is ${heads}`, keyValueHeads);
  }
  if (headSize % 2 !== 0) file.refuse("head_dim", "rotary positions need an even size", headSize);

  // transformers does not read it in qwen2, where query, key and value always have one and the output never
  const attentionBias = modelType !== "qwen2" && file.boolean("attention_bias", false);
  return {
    modelType,
    vocabSize: file.count("vocab_size"),
    hiddenSize,
    intermediateSize: file.count("intermediate_size"),
    layers: file.count("num_hidden_layers", undefined, MAX_LAYERS),
    heads,
    keyValueHeads,
    headSize,
    normEpsilon: file.positive("rms_norm_eps", 1e-6),
    ...parseRope(file, file.count("max_position_embeddings", modelType === "llama" ? 2048 : 32768)),
    tied: file.boolean("tie_word_embeddings", false),
    queryKeyValueBias: modelType === "qwen2" || attentionBias,
    ...(attentionBias && { outputBias: true }),
    ...(modelType === "qwen3" && { queryKeyNorm: true }),
    initializerRange: file.positive("initializer_range", 0.02),
  };
}

/** Fields that may be present if they describe the decoder's fixed behaviour. */
const NEUTRAL_FIELDS: readonly [field: string, allowed: readonly unknown[], remedy: string][] = [
  ["hidden_act", ["silu"], "only silu is supported"],
  ["attention_dropout", [0], "only 0 is supported"],
  ["mlp_bias", [false], "only false is supported"],
  ["pretraining_tp", [1], "only 1 is supported"],
  ["attn_logit_softcapping", [], "it is not supported"],
  ["partial_rotary_factor", [1], "only 1 is supported"],
  ["quantization_config", [], "use the unquantised model"],
];

/** Follows transformers: layers from max_window_layers on use the window, unless layer_types lists the layers that do. */
function refuseSlidingWindow(file: ConfigFile): void {
  const types = file.value("layer_types");
  if (types !== undefined) {
    const other = Array.isArray(types) ? types.find((type) => type !== "full_attention") : types;
    if (other !== undefined) file.refuse("layer_types", "only full_attention is supported", other);
    return;
  }
  if (!file.boolean("use_sliding_window", false)) return;
  const first = file.value("max_window_layers");
  if (typeof first !== "number" || first < file.count("num_hidden_layers")) {
    file.refuse("use_sliding_window", "only full attention is supported, set it to false");
  }
}

/** Returns the `config.json` that transformers reads back as the same model; `extra` carries fields such as `eos_token_id`. */
export function configJson(config: ModelConfig, extra: Record<string, unknown> = {}): Record<string, unknown> {
  const rope = ropeJson(config.ropeTheta, config.rope);
  return {
    architectures: [ARCHITECTURES[config.modelType]],
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
    ...(config.rope && { rope_scaling: rope }), // transformers 4
    rope_parameters: rope, // transformers 5
    tie_word_embeddings: config.tied,
    max_position_embeddings: config.maxPositions,
    initializer_range: config.initializerRange,
    attention_dropout: 0,
    ...(config.modelType !== "llama" && { use_sliding_window: false }),
    ...(config.modelType !== "qwen2" && { attention_bias: config.queryKeyValueBias }),
    ...(config.modelType === "llama" && { mlp_bias: false }),
    dtype: "float32",
    ...extra,
  };
}
