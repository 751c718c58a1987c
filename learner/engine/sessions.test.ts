import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { fullAdaptation, loraAdaptation } from "./adaptation.ts";
import type { EngineOptions, PolicyStep } from "./engine.ts";
import { draw } from "./graph/differences.fixture.ts";
import { Graph } from "./graph/graph.ts";
import { cast, mul } from "./graph/primitives.ts";
import { rounded } from "./graph/rounded.fixture.ts";
import { liveNodes } from "./graph/serialise.ts";
import { tensor } from "./graph/tensor.ts";
import { configJson, type ModelConfig } from "./model/config.ts";
import { decoderFeeds, targetFeeds } from "./model/decoder.ts";
import { saveWeights } from "./model/files.ts";
import { frozenLinear } from "./model/frozen.ts";
import { HALF_PREFIX, isMultiplied } from "./model/halved.ts";
import { initialAdapter, PROJECTIONS } from "./model/lora.ts";
import { initialWeights, parameters } from "./model/weights.ts";
import { createSession } from "./runtime/runtime.ts";
import type { Session } from "./runtime/session.ts";
import { randomSamples } from "./samples.fixture.ts";
import { checkCompute, Sessions } from "./sessions.ts";
import {
  GRADIENT_PREFIX,
  HALF_GRADIENT_PREFIX,
  policyStepGraph,
  pretrainStepGraph,
  SUM_PREFIX,
  valueStepGraph,
} from "./steps.ts";
import { Trainer } from "./trainer.ts";

const CONFIG: ModelConfig = {
  ...{ modelType: "qwen2", vocabSize: 40, hiddenSize: 16, intermediateSize: 24, layers: 3 },
  ...{ heads: 4, keyValueHeads: 2, headSize: 4, normEpsilon: 1e-6, ropeTheta: 10000, tied: true },
  ...{ queryKeyValueBias: true, maxPositions: 64, initializerRange: 0.2 },
};
const LORA = { rank: 2, alpha: 2, targets: PROJECTIONS };
const ADAM = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01 };
const STEP: PolicyStep = {
  ...{ learningRate: 0, gradientClip: 1, adam: ADAM, aggregation: "TokenMean", microBatchSize: 3 },
  ...{ temperature: 0.8, clipRatio: 0.2, dualClip: 0, entropyCoefficient: 0.01, klCoefficient: 0.1 },
};

let folder: string;
/** folders with the same weights in float32 and in bfloat16 */
const models: Record<"F32" | "BF16", string> = { F32: "", BF16: "" };
before(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "sessions-"));
  const weights = initialWeights(CONFIG, 3);
  for (const dtype of ["F32", "BF16"] as const) {
    const model = path.join(folder, dtype);
    models[dtype] = model;
    fs.mkdirSync(model);
    fs.writeFileSync(path.join(model, "config.json"), JSON.stringify(configJson(CONFIG, { eos_token_id: 0 })));
    const tensors = parameters(CONFIG).map((part) => ({ ...part, read: () => weights.get(part.name)! }));
    saveWeights(model, tensors, { dtype });
  }
});
after(() => fs.rmSync(folder, { recursive: true }));

/** Gradients of a step of the policy and of the critic. */
async function gradientsWith(options: Partial<EngineOptions> & { model: string }): Promise<Float32Array[]> {
  const trainer = new Trainer({ threads: 1, ...options });
  const batch = randomSamples(CONFIG.vocabSize, 8);
  await trainer.updatePolicy(batch, STEP);
  const policy = trainer.policy.gradient!.data.slice();
  await trainer.updateCritic(batch, { ...STEP, valueClip: 0.5 });
  await trainer.close();
  return [policy, trainer.critic!.gradient!.data];
}

test("checkpointing changes no bit of a gradient, with every weight trained and with adapters", async () => {
  for (const options of [{ model: models.F32 }, { model: models.BF16, adapter: { ...LORA, seed: 1 } }]) {
    const never = await gradientsWith({ ...options, activationCheckpointing: "Never" });
    assert.ok(never.every((gradient) => gradient.some((x) => x !== 0)));
    assert.deepEqual(await gradientsWith({ ...options, activationCheckpointing: "Always" }), never);
  }
});

test("Auto checkpoints the micro-batches that would need more than the available memory", async () => {
  const model = fullAdaptation(models.F32);
  const feeds = (length: number) => ({
    ...decoderFeeds([{ prompt: new Int32Array(length), responses: [new Int32Array(length)] }], CONFIG),
  });
  const chosen = async (options: Partial<EngineOptions>, lengths: number[]) => {
    const sessions = new Sessions(model, { threads: 1, ...options });
    const made: Session[] = [];
    for (const length of lengths) made.push(await sessions.ofStep(policyStepGraph, feeds(length)));
    const distinct = [...new Set(made)];
    await sessions.release();
    return made.map((session) => distinct.indexOf(session));
  };
  // 4 bytes x some 100 values x 16 wide x tokens
  assert.deepEqual(await chosen({ activationBytes: 250_000 }, [4, 32, 5, 30]), [0, 1, 0, 1]);
  assert.deepEqual(await chosen({ activationBytes: 1 }, [4, 32]), [0, 0]);
  assert.deepEqual(await chosen({}, [4, 32]), [0, 0], "half of the free memory");
  assert.deepEqual(await chosen({ activationBytes: 1, activationCheckpointing: "Never" }, [4, 32]), [0, 0]);
});

const PRODUCTS = new Set(["MatMul", "FusedMatMul", "Gemm"]);

/** dtypes of the operands of a graph's matrix products */
function productDtypes(graph: Graph): Set<string> {
  const values = [...graph.inputs, ...graph.initializers.map(({ value }) => value)];
  const dtypes = new Map([...values, ...graph.nodes.flatMap(({ outputs }) => outputs)].map((v) => [v.name, v.dtype]));
  const products = graph.nodes.filter(({ type }) => PRODUCTS.has(type));
  return new Set(products.flatMap(({ inputs }) => inputs.map((name) => dtypes.get(name)!)));
}

test("a bfloat16 graph has bfloat16 products; norms, logits and sums over layers are float32", () => {
  for (const [name, model] of [
    ["full", fullAdaptation(models.F32)],
    ["LoRA", loraAdaptation(models.BF16, LORA, 1)],
  ] as const) {
    for (const build of [policyStepGraph, pretrainStepGraph]) {
      for (const checkpointing of [false, true]) {
        const graph = build(model, { compute: "bfloat16", checkpointing });
        assert.deepEqual(productDtypes(graph), new Set(["bfloat16", "float32"]), name);
        const exact = graph.nodes.filter(({ type, outputs: [y] }) => PRODUCTS.has(type) && y!.dtype === "float32");
        // RMSNorm's gradient sums over a row by a product with the norm's weights, in float32
        const others = exact.flatMap(({ outputs: [y] }) => (y!.shape.at(-1) === 1 ? [] : [String(y!.shape)]));
        const ofLogits = [`response,${CONFIG.vocabSize}`, `response,${CONFIG.hiddenSize}`];
        const ofWeight = name === "full" ? [`${CONFIG.vocabSize},${CONFIG.hiddenSize}`] : [];
        // if the output layer is the embedding, its gradient is a product that is added to the sum
        assert.deepEqual(new Set(others), new Set([...ofLogits, ...ofWeight]), name);
        for (const { type, outputs } of graph.nodes)
          if (/LayerNormalization|Sigmoid|QuickGelu|RotaryEmbedding/.test(type))
            assert.equal(outputs[0]!.dtype, "float32");
        for (const [list, prefix] of [
          [graph.inputs, HALF_PREFIX],
          [graph.outputs.map(({ name: output, value }) => ({ ...value, name: output })), HALF_GRADIENT_PREFIX],
        ] as const)
          for (const value of list)
            assert.equal(value.dtype === "bfloat16", value.name.startsWith(prefix), `${name}: ${value.name}`);
        const gradients = graph.outputs.filter((output) => output.name.startsWith(HALF_GRADIENT_PREFIX));
        assert.equal(gradients.length, model.shapes.policy.filter((parameter) => isMultiplied(parameter.name)).length);
      }
    }
  }
  assert.deepEqual(productDtypes(valueStepGraph(fullAdaptation(models.F32))), new Set(["float32"]));
});

test("a bfloat16 graph multiplies stored bfloat16 weights without a cast", () => {
  const graph = policyStepGraph(loraAdaptation(models.BF16, LORA, 1), { compute: "bfloat16" });
  const products = liveNodes(graph).flatMap(({ type, inputs }) => (PRODUCTS.has(type) ? inputs : []));
  for (const { name, kind } of parameters(CONFIG)) {
    if (kind !== "matrix") continue;
    // the input of the first projections has no gradient
    const backward = /layers\.0\.self_attn\.[qkv]_proj/.test(name) ? 0 : 1;
    assert.equal(products.filter((input) => input === name).length, 1 + backward, name);
  }
});

/** Numbers of which nothing is known but their scale. */
const noise = (count: number, scale: number, seed: number) => draw(count, [-scale, scale], seed);

test("a bfloat16 graph has float32's log-probs and gradients up to rounding, also beside large biases", async () => {
  // wide and deep enough that roundings add up as in a real model; Qwen's keys have biases of a hundred times the rest
  const config: ModelConfig = {
    ...{ ...CONFIG, vocabSize: 256, hiddenSize: 128, intermediateSize: 320, layers: 4, headSize: 32 },
    ...{ initializerRange: 0.06, maxPositions: 256, ropeTheta: 1e6 },
  };
  const model = path.join(folder, "biased");
  fs.mkdirSync(model);
  fs.writeFileSync(path.join(model, "config.json"), JSON.stringify(configJson(config, { eos_token_id: 0 })));
  const weights = initialWeights(config, 3);
  for (const [i, { name, shape, kind }] of parameters(config).entries())
    if (kind === "bias") weights.set(name, noise(shape[0]!, /k_proj/.test(name) ? 10 : 1, i));
  const tensors = parameters(config).map((part) => ({ ...part, read: () => weights.get(part.name)! }));
  saveWeights(model, tensors, { dtype: "BF16" });
  const lora = { rank: 4, alpha: 4, targets: PROJECTIONS };
  const adapter = initialAdapter(config, lora, 1);
  for (const [name, data] of adapter)
    if (name.endsWith("lora_B.weight")) data.set(noise(data.length, 0.02, data.length));
  const full = fullAdaptation(model);
  for (const [name, adaptation, values] of [
    ["full", full, new Map([...full.initial()])],
    ["LoRA", loraAdaptation(model, lora, 1), adapter],
  ] as const)
    for (const checkpointing of [false, true]) {
      const run = async (compute: "float32" | "bfloat16", proximalLogProbs: Float32Array) => {
        const graph = policyStepGraph(adaptation, { compute, checkpointing });
        const session = await createSession(compute === "bfloat16" ? rounded(graph) : graph, {
          threads: 2,
          ...adaptation.sessionOptions,
        });
        const fed = graph.inputs.flatMap((input) => {
          const of = values.get(input.name.replace(HALF_PREFIX, "").replace(SUM_PREFIX, ""));
          if (!of) return [];
          const data = input.name.startsWith(SUM_PREFIX) ? new Float32Array(of.length) : of;
          return [[input.name, tensor(data, input.shape as number[])] as const];
        });
        const results = await session.run({ ...Object.fromEntries(fed), ...lossFeeds(config, proximalLogProbs) });
        await session.release();
        const gradient = adaptation.shapes.policy.map(
          ({ name: parameter }) =>
            (results[GRADIENT_PREFIX + parameter] ?? results[HALF_GRADIENT_PREFIX + parameter])!.data as Float32Array,
        );
        return { logProbs: (results.tokens!.data as Float32Array).slice(0, TOKENS), gradient };
      };
      const { logProbs } = await run("float32", new Float32Array(TOKENS)); // of ratios of 1
      const [exact, half] = [await run("float32", logProbs), await run("bfloat16", logProbs)];
      const squares = (a: Float32Array, b?: Float32Array) => a.reduce((sum, x, i) => sum + (x - (b?.[i] ?? 0)) ** 2, 0);
      const error = Math.sqrt(squares(half.logProbs, exact.logProbs) / TOKENS);
      assert.ok(error > 1e-5 && error < 0.02, `${name}: log-probs are off by ${error}`);
      const [off, all] = exact.gradient.reduce(
        ([a, b], d, i) => [a + squares(half.gradient[i]!, d), b + squares(d)] as [number, number],
        [0, 0] as [number, number],
      );
      const relative = Math.sqrt(off / all);
      assert.ok(relative > 1e-4 && relative < 0.05, `${name}: the gradient is off by ${relative} of its norm`);
    }
});

const TOKENS = 120;

/** Two sequences of 60 and 60 tokens. */
function lossFeeds(config: ModelConfig, proximalLogProbs: Float32Array) {
  const ids = Int32Array.from(noise(TOKENS, config.vocabSize / 2, 5), (x) => Math.floor(x + config.vocabSize / 2));
  const rows = [0, 1].map((row) => {
    const tokens = (TOKENS / 2) * row;
    return { prompt: ids.slice(0, 60), responses: [ids.slice(tokens, tokens + TOKENS / 2)] };
  });
  const all = (value: number) => tensor(new Float32Array(TOKENS).fill(value));
  const scalar = (value: number) => tensor(Float32Array.of(value), []);
  return {
    ...{ ...decoderFeeds(rows, config), ...targetFeeds(rows), inverseTemperature: scalar(1) },
    ...{ proximalLogProbs: tensor(proximalLogProbs), referenceLogProbs: tensor(proximalLogProbs) },
    ...{ advantages: tensor(noise(TOKENS, 1, 6)), policyScale: all(1 / TOKENS), entropyScale: all(0), klScale: all(0) },
    ...{ ratioLow: scalar(0.8), ratioHigh: scalar(1.2), dualClip: scalar(1e30) },
  };
}

test("a bfloat16 graph keeps an adapter's part that is smaller than a rounding of the layer's output", async () => {
  const rows = 4000;
  const g = new Graph("small", { compute: "bfloat16" });
  const x = g.input("x", "float32", [rows, 8]);
  const weight = g.input("w", "float32", [1, 8]);
  // of outputs between 1 and 2, whose roundings are 2^-8 apart, an eighth of one
  const added = g.input("added", "float32", [rows, 1]);
  for (const [name, total] of [
    ["with", added],
    ["without", mul(added, 0)],
  ] as const)
    g.output(name, cast(frozenLinear(x, weight, undefined, total), "float32"));
  const session = await createSession(rounded(g), { threads: 1 });
  const shift = 2 ** -11;
  const results = await session.run({
    x: tensor(draw(rows * 8, [1, 2], 1), [rows, 8]),
    w: tensor(new Float32Array(8).fill(1 / 8), [1, 8]),
    added: tensor(new Float32Array(rows).fill(shift), [rows, 1]),
  });
  await session.release();
  const mean = (name: string) => (results[name]!.data as Float32Array).reduce((sum, y) => sum + y / rows, 0);
  const found = (mean("with") - mean("without")) / shift;
  assert.ok(Math.abs(found - 1) < 0.3, `${found} of it is there on average`);
});

test("bfloat16 and TF32 on a CPU are refused in one line", () => {
  for (const compute of ["bfloat16", "tf32"] as const)
    assert.throws(() => new Trainer({ model: models.F32, threads: 1, compute }), {
      code: "compute",
      message: new RegExp(`^compute is ${compute}, but [^\\n]* CUDA alone; set it to float32 on a CPU$`),
    });
  assert.doesNotThrow(() => checkCompute({ compute: "bfloat16", device: { kind: "cuda", id: 0 } }));
});
