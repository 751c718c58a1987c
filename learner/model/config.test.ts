import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configJson, parseConfig } from "./config.ts";
import { initialWeights, parameters, selectWeights } from "./weights.ts";

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
    ["rope_scaling null", { rope_scaling: null, rope_theta: 2 }, { ropeTheta: 2 }],
    ["head_dim", { head_dim: 32 }, { headSize: 32 }],
    ["no num_key_value_heads", { num_key_value_heads: undefined }, { keyValueHeads: 4 }],
    ["llama", { model_type: "llama", attention_bias: false }, { modelType: "llama", queryKeyValueBias: false }],
    ["layer_types", { layer_types: ["full_attention", "full_attention"] }, {}],
    ["untied", { tie_word_embeddings: false }, { tied: false }],
  ] as [string, object, object][]) {
    it(`reads ${field}`, () => {
      const config = parseConfig({ ...QWEN, ...change });
      assert.deepEqual(config, { ...config, ...read });
      assert.deepEqual(parseConfig(configJson(config)), config);
    });
  }

  for (const [change, message] of [
    [{ model_type: "mixtral" }, /model_type is "mixtral"; supported are qwen2 and llama/],
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
    [{ rope_scaling: { rope_type: "yarn", factor: 4 } }, /rope_scaling.rope_type is "yarn"/],
    [{ rope_scaling: { type: "linear" } }, /rope_type is "linear"/],
    [{ rope_parameters: { rope_type: "llama3" } }, /rope_parameters.rope_type is "llama3"/],
    [{ rope_theta: -1 }, /rope_theta is -1/],
    [{ rms_norm_eps: "1e-6" }, /rms_norm_eps is "1e-6"/],
    [{ quantization_config: { bits: 4 } }, /quantization_config is \{"bits":4\}/],
    [{ model_type: "llama", attention_bias: true }, /attention_bias is true/],
    [{ model_type: "llama", mlp_bias: true }, /mlp_bias is true/],
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

  it("are the same for the same seed, and of the size and spread that config.json asks for", () => {
    assert.deepEqual(initialWeights(config, 3), initialWeights(config, 3));
    assert.notDeepEqual(initialWeights(config, 3), initialWeights(config, 4));
    const embedding = initialWeights(config, 3).get("model.embed_tokens.weight")!;
    const mean = embedding.reduce((sum, value) => sum + value, 0) / embedding.length;
    const deviation = Math.sqrt(embedding.reduce((sum, value) => sum + (value - mean) ** 2, 0) / embedding.length);
    assert.ok(Math.abs(mean) < 0.001 && Math.abs(deviation - 0.02) < 0.001);
  });

  it("come in canonical order, whatever the order of the file, without copies of tied layers", () => {
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
