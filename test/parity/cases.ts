/** The models of the parity tests: tiny, with random weights, over the families and options that are supported. */

export interface ParityCase {
  readonly name: string;
  /** config.json */
  readonly config: Readonly<Record<string, unknown>>;
  /** Dtype of the stored weights. */
  readonly dtype: "F32" | "BF16" | "F16";
  /** Largest weight file; absent: one file. */
  readonly shardBytes?: number;
  /** Lengths of the sequences whose log-probs are compared. */
  readonly lengths: readonly number[];
  /** Whether the distribution of sampled tokens is tested, too. */
  readonly sampled?: boolean;
}

const SHAPE = {
  vocab_size: 160,
  hidden_size: 32,
  intermediate_size: 48,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 512,
  bos_token_id: null,
  eos_token_id: null,
};
const QWEN2 = { ...SHAPE, model_type: "qwen2", tie_word_embeddings: true, rope_theta: 1e6 };
const QWEN3 = { ...SHAPE, model_type: "qwen3", head_dim: 16, tie_word_embeddings: true, rope_theta: 1e6 };
const LLAMA = { ...SHAPE, model_type: "llama", tie_word_embeddings: false, rms_norm_eps: 1e-5 };
/** Original context of the scaled positions; greedy continuations and the longest sequences exceed it. */
const ORIGINAL = 64;
const LENGTHS = [1, 2, 23, 100];
const LONG = [2, 40, 300];
const YARN = { rope_type: "yarn", factor: 8, original_max_position_embeddings: ORIGINAL };
const LLAMA3 = { factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: ORIGINAL };

export const CASES: readonly ParityCase[] = [
  { name: "qwen2", sampled: true, dtype: "F32", lengths: LENGTHS, config: QWEN2 },
  {
    name: "qwen2-untied-without-groups",
    dtype: "F32",
    lengths: LENGTHS,
    config: { ...QWEN2, tie_word_embeddings: false, num_key_value_heads: 4 },
  },
  { name: "qwen2-bfloat16-sharded", dtype: "BF16", shardBytes: 8192, lengths: LENGTHS, config: QWEN2 },
  {
    name: "qwen2-float16-untied",
    dtype: "F16",
    lengths: LENGTHS,
    config: { ...QWEN2, tie_word_embeddings: false },
  },
  {
    name: "qwen2-yarn-as-in-its-model-card",
    dtype: "F32",
    lengths: LONG,
    config: {
      ...{ ...QWEN2, max_position_embeddings: ORIGINAL },
      rope_scaling: { type: "yarn", factor: 8, original_max_position_embeddings: ORIGINAL },
    },
  },
  {
    name: "qwen2-linear",
    dtype: "BF16",
    lengths: LONG,
    config: { ...QWEN2, rope_parameters: { rope_type: "linear", factor: 4, rope_theta: 1e6 } },
  },
  {
    name: "qwen2-far-positions",
    dtype: "F32",
    lengths: [2000],
    config: { ...QWEN2, rope_theta: 10000, max_position_embeddings: 2048 },
  },
  { name: "qwen3", sampled: true, dtype: "F32", lengths: LENGTHS, config: QWEN3 },
  {
    name: "qwen3-bfloat16-sharded-untied",
    dtype: "BF16",
    shardBytes: 16384,
    lengths: LENGTHS,
    config: { ...QWEN3, tie_word_embeddings: false, num_attention_heads: 8, num_key_value_heads: 2 },
  },
  {
    name: "qwen3-bias-yarn",
    dtype: "F32",
    lengths: LONG,
    config: {
      ...QWEN3,
      attention_bias: true,
      rope_parameters: { ...YARN, rope_theta: 10000, mscale: 1, mscale_all_dim: 0.5 },
    },
  },
  {
    name: "qwen3-large-vocabulary",
    dtype: "F16",
    lengths: LENGTHS,
    config: { ...QWEN3, vocab_size: 40000, hidden_size: 16, head_dim: 8, num_hidden_layers: 1 },
  },
  { name: "llama", sampled: true, dtype: "F32", lengths: LENGTHS, config: LLAMA },
  {
    name: "llama-tied-bias",
    dtype: "F32",
    lengths: LENGTHS,
    config: { ...LLAMA, tie_word_embeddings: true, attention_bias: true },
  },
  { name: "llama-head-size", dtype: "BF16", lengths: LENGTHS, config: { ...LLAMA, head_dim: 6 } },
  {
    name: "llama-linear",
    dtype: "F32",
    lengths: LONG,
    config: {
      ...LLAMA,
      max_position_embeddings: ORIGINAL,
      rope_theta: 10000,
      rope_scaling: { type: "linear", factor: 8 },
    },
  },
  {
    name: "llama-llama3",
    dtype: "F32",
    lengths: LONG,
    config: { ...LLAMA, rope_parameters: { rope_type: "llama3", rope_theta: 10000, ...LLAMA3 } },
  },
  {
    name: "llama-llama3-float16-one-key-head",
    dtype: "F16",
    lengths: LONG,
    config: { ...LLAMA, num_key_value_heads: 1, rope_theta: 500000, rope_scaling: { rope_type: "llama3", ...LLAMA3 } },
  },
  {
    name: "llama-yarn-with-all-fields",
    dtype: "F32",
    lengths: LONG,
    config: {
      ...LLAMA,
      rope_parameters: {
        ...{ ...YARN, rope_theta: 10000, attention_factor: 1.25, beta_fast: 4, beta_slow: 0.5, truncate: false },
      },
    },
  },
];
