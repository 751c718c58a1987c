import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configJson, parseConfig } from "./config.ts";
import { selectWeights } from "./folder.fixture.ts";
import { initialWeights, parameters } from "./weights.ts";

const QWEN = {
  model_type: "qwen2",
  vocab_size: 320,
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  hidden_act: "silu",
  tie_word_embeddings: true,
};

describe("parseConfig", () => {
  it("reads a config.json, with the defaults of transformers", () => {
    assert.deepEqual(parseConfig(QWEN), {
      modelType: "qwen2",
      vocabSize: 320,
      hiddenSize: 64,
      intermediateSize: 96,
      layers: 2,
      heads: 4,
      keyValueHeads: 2,
      headSize: 16,
      normEpsilon: 1e-6,
      ropeTheta: 10000,
      tied: true,
      queryKeyValueBias: true,
      maxPositions: 32768,
      initializerRange: 0.02,
    });
  });

  for (const [field, change, read] of [
    ["rope_theta", { rope_theta: 5e5 }, { ropeTheta: 5e5 }],
    ["rope_parameters", { rope_parameters: { rope_type: "default", rope_theta: 1e6 } }, { ropeTheta: 1e6 }],
    [
      "rope_scaling empty beside rope_parameters",
      { rope_scaling: {}, rope_parameters: { rope_type: "linear", factor: 2, rope_theta: 2 } },
      { ropeTheta: 2, rope: { type: "linear", factor: 2, originalPositions: 32768 }, maxPositions: 65536 },
    ],
    ["rope_scaling null", { rope_scaling: null, rope_theta: 2 }, { ropeTheta: 2 }],
    ["head_dim", { head_dim: 32 }, { headSize: 32 }],
    ["no num_key_value_heads", { num_key_value_heads: undefined }, { keyValueHeads: 4 }],
    ["llama", { model_type: "llama", attention_bias: false }, { modelType: "llama", queryKeyValueBias: false }],
    ["layer_types", { layer_types: ["full_attention", "full_attention"] }, {}],
    ["untied", { tie_word_embeddings: false }, { tied: false }],
    ["qwen3", { model_type: "qwen3" }, { queryKeyValueBias: false, queryKeyNorm: true, headSize: 128 }],
    [
      "qwen3 with biases",
      { model_type: "qwen3", attention_bias: true, head_dim: 8 },
      { outputBias: true, headSize: 8 },
    ],
    ["llama with biases", { model_type: "llama", attention_bias: true }, { queryKeyValueBias: true, outputBias: true }],
    ["attention_bias, which qwen2 has anyway", { attention_bias: false }, { queryKeyValueBias: true }],
    ["a sliding window that no layer has", { use_sliding_window: true, max_window_layers: 2 }, {}],
    [
      "linear scaling",
      { rope_theta: 7, rope_scaling: { type: "linear", factor: 2 }, max_position_embeddings: 100 },
      { ropeTheta: 7, rope: { type: "linear", factor: 2, originalPositions: 100 }, maxPositions: 200 },
    ],
    [
      "llama3 scaling",
      {
        max_position_embeddings: 640,
        rope_parameters: {
          ...{ rope_type: "llama3", rope_theta: 5, factor: 8, low_freq_factor: 1, high_freq_factor: 4 },
          original_max_position_embeddings: 64,
        },
      },
      {
        ropeTheta: 5,
        rope: { type: "llama3", factor: 8, originalPositions: 64, lowFrequencyFactor: 1, highFrequencyFactor: 4 },
        maxPositions: 640,
      },
    ],
    [
      "yarn scaling as Qwen2.5's model card says it",
      {
        max_position_embeddings: 32768,
        rope_scaling: { type: "yarn", factor: 4, original_max_position_embeddings: 32768 },
      },
      {
        rope: {
          ...{ type: "yarn", factor: 4, originalPositions: 32768, attentionFactor: 0.1 * Math.log(4) + 1 },
          ...{ betaFast: 32, betaSlow: 1, truncate: true },
        },
        maxPositions: 131072,
      },
    ],
    [
      "yarn scaling with all of its fields",
      {
        max_position_embeddings: 400,
        rope_parameters: {
          ...{ rope_type: "yarn", factor: 2, original_max_position_embeddings: 200, truncate: false },
          ...{ attention_factor: 1.5, beta_fast: 16, beta_slow: 2 },
        },
      },
      {
        rope: {
          ...{ type: "yarn", factor: 2, originalPositions: 200, attentionFactor: 1.5 },
          ...{ betaFast: 16, betaSlow: 2, truncate: false },
        },
      },
    ],
  ] as [string, object, object][]) {
    it(`reads ${field}`, () => {
      const config = parseConfig({ ...QWEN, ...change });
      assert.deepEqual(config, { ...config, ...read });
      assert.deepEqual(parseConfig(configJson(config)), config);
    });
  }

  for (const [change, message] of [
    [{ model_type: "mixtral" }, /model_type is "mixtral"; supported are qwen2, qwen3 and llama/],
    [{ model_type: undefined }, /model_type is missing/],
    [{ vocab_size: undefined }, /vocab_size is missing; expected a positive whole number/],
    [{ hidden_size: 0 }, /hidden_size is 0/],
    [{ hidden_size: "64" }, /hidden_size is "64"/],
    [{ num_hidden_layers: 1.5 }, /num_hidden_layers is 1.5/],
    [{ num_attention_heads: 3 }, /head_dim is missing/],
    [{ num_key_value_heads: 3 }, /num_key_value_heads is 3; it must divide/],
    [{ head_dim: 15 }, /head_dim is 15; rotary/],
    [{ hidden_act: "gelu" }, /hidden_act is "gelu"; only silu/],
    [{ use_sliding_window: true }, /use_sliding_window is true/],
    [{ layer_types: ["full_attention", "sliding_attention"] }, /layer_types is "sliding_attention"/],
    [{ use_sliding_window: true, max_window_layers: 1 }, /use_sliding_window is true/],
    [{ architectures: ["Qwen2ForTokenClassification"] }, /architectures is .*only Qwen2ForCausalLM is supported/],
    [{ rope_scaling: { rope_type: "dynamic", factor: 4 } }, /rope_type is "dynamic"; supported are default, linear, l/],
    [{ rope_scaling: { type: "mrope" } }, /rope_scaling.type is "mrope"/],
    [{ rope_scaling: { type: "linear" } }, /rope_scaling.factor is missing/],
    [{ rope_scaling: { type: "yarn", factor: "4" } }, /rope_scaling.factor is "4"; expected a positive number/],
    [{ rope_scaling: "yarn" }, /rope_scaling is "yarn"; expected an object/],
    [{ rope_parameters: { rope_type: "llama3", factor: 8 } }, /rope_parameters.low_freq_factor is missing/],
    [
      { rope_parameters: { rope_type: "llama3", factor: 8, low_freq_factor: 4, high_freq_factor: 4 } },
      /high_freq_factor is 4; it must be above low_freq_factor, which is 4/,
    ],
    [{ rope_parameters: { partial_rotary_factor: 0.5 } }, /rope_parameters.partial_rotary_factor is 0.5/],
    [{ rope_parameters: { full_attention: {} } }, /full_attention is \{\}; give one set/],
    [{ tie_word_embeddings: "yes" }, /tie_word_embeddings is "yes"; expected true or false/],
    [{ model_type: "llama", attention_bias: 1 }, /attention_bias is 1; expected true or false/],
    [{ rope_theta: -1 }, /rope_theta is -1/],
    [{ rms_norm_eps: "1e-6" }, /rms_norm_eps is "1e-6"/],
    [{ quantization_config: { bits: 4 } }, /quantization_config is \{"bits":4\}/],
    [{ model_type: "llama", mlp_bias: true }, /mlp_bias is true/],
    [{ model_type: "llama", pretraining_tp: 2 }, /pretraining_tp is 2; only 1 is supported/],
    [{ attention_dropout: 0.1 }, /attention_dropout is 0.1/],
  ] as [object, RegExp][]) {
    it(`refuses ${JSON.stringify(change)}`, () => {
      assert.throws(() => parseConfig({ ...QWEN, ...change }, "m/config.json"), { code: "config", message });
    });
  }

  for (const json of [null, [], "text", 1]) {
    it(`refuses ${JSON.stringify(json)}`, () => assert.throws(() => parseConfig(json), /expected a JSON object/));
  }
});

describe("weights", () => {
  const config = parseConfig(QWEN);
  const tensors = () => {
    const weights = initialWeights(config, 3);
    return new Map(parameters(config).map(({ name, shape }) => [name, { shape, data: weights.get(name)! }]));
  };

  it("are the same for the same seed and have the sizes and the spread of config.json", () => {
    assert.deepEqual(initialWeights(config, 3), initialWeights(config, 3));
    assert.notDeepEqual(initialWeights(config, 3), initialWeights(config, 4));
    const embedding = initialWeights(config, 3).get("model.embed_tokens.weight")!;
    const mean = embedding.reduce((sum, value) => sum + value, 0) / embedding.length;
    const deviation = Math.sqrt(embedding.reduce((sum, value) => sum + (value - mean) ** 2, 0) / embedding.length);
    assert.ok(Math.abs(mean) < 0.001 && Math.abs(deviation - 0.02) < 0.001);
  });

  it("are in canonical order, in any order of the file, without copies of tied layers", () => {
    const shuffled = new Map([...tensors()].reverse());
    shuffled.set("lm_head.weight", shuffled.get("model.embed_tokens.weight")!);
    shuffled.set("model.layers.0.self_attn.rotary_emb.inv_freq", { shape: [8], data: new Float32Array(8) });
    assert.deepEqual([...selectWeights(config, shuffled, "f").keys()], [...tensors().keys()]);
  });

  it("are refused when one is missing, has another shape or is unknown", () => {
    const missing = tensors();
    missing.delete("model.norm.weight");
    assert.throws(() => selectWeights(config, missing, "f"), /f: parameter model.norm.weight is missing/);
    const other = tensors().set("model.norm.weight", { shape: [8, 8], data: new Float32Array(64) });
    assert.throws(
      () => selectWeights(config, other, "f"),
      /model.norm.weight is \[8,8\], but config.json asks for \[64\]/,
    );
    const more = tensors().set("model.layers.2.mlp.up_proj.weight", { shape: [1], data: new Float32Array(1) });
    assert.throws(() => selectWeights(config, more, "f"), /unknown parameter model.layers.2/);
    assert.throws(() => selectWeights(parseConfig({ ...QWEN, tie_word_embeddings: false }), tensors(), "f"), /lm_head/);
  });
});
