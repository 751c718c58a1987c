import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Graph } from "../graph/graph.ts";
import { type GraphSession, Session } from "../graph/session.ts";
import { configJson, type ModelConfig } from "../model/config.ts";
import { decoderFeeds } from "../model/decoder.ts";
import { PROJECTIONS } from "../model/lora.ts";
import { saveWeights } from "../model/save.ts";
import { initialWeights, parameters } from "../model/weights.ts";
import { fullAdaptation, loraAdaptation } from "./adaptation.ts";
import type { EngineOptions, PolicyStep } from "./engine.ts";
import { randomSamples } from "./samples.fixture.ts";
import { Sessions } from "./sessions.ts";
import { GRADIENT_PREFIX, policyStepGraph, pretrainStepGraph, valueStepGraph } from "./steps.ts";
import { Trainable } from "./trainable.ts";
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
/** of the same weights in float32 and in bfloat16 */
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

test("Auto checkpoints the micro-batches that would need more memory than there is to use", async () => {
  const model = fullAdaptation(models.F32);
  const feeds = (length: number) => ({
    ...decoderFeeds([{ prompt: new Int32Array(length), responses: [new Int32Array(length)] }], CONFIG),
  });
  const chosen = async (options: Partial<EngineOptions>, lengths: number[]) => {
    const sessions = new Sessions(model, { threads: 1, ...options });
    const made: GraphSession[] = [];
    for (const length of lengths) made.push(await sessions.ofStep(policyStepGraph, feeds(length)));
    const distinct = [...new Set(made)];
    await sessions.release();
    return made.map((session) => distinct.indexOf(session));
  };
  // 4 bytes x some 100 values x 16 wide x tokens
  assert.deepEqual(await chosen({ activationBytes: 250_000 }, [4, 32, 5, 30]), [0, 1, 0, 1]);
  assert.deepEqual(await chosen({ activationBytes: 1 }, [4, 32]), [0, 0]);
  assert.deepEqual(await chosen({}, [4, 32]), [0, 0], "half of what is free");
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

test("bfloat16: products of the step are bfloat16, what goes in and out and the optimiser's gradients float32", () => {
  for (const [name, model] of [
    ["full", fullAdaptation(models.F32)],
    ["LoRA", loraAdaptation(models.BF16, LORA, 1)],
  ] as const) {
    for (const build of [policyStepGraph, pretrainStepGraph]) {
      for (const checkpointing of [false, true]) {
        const graph = build(model, { compute: "bfloat16", checkpointing });
        const dtypes = productDtypes(graph);
        // RMSNorm's gradient sums over a row by a product with the norm's weights, in float32; so are logits
        assert.deepEqual(dtypes, new Set(["bfloat16", "float32"]), name);
        const exact = graph.nodes.filter(({ type, outputs: [y] }) => PRODUCTS.has(type) && y!.dtype === "float32");
        const widths = new Set(exact.map(({ outputs }) => outputs[0]!.shape.at(-1)));
        assert.deepEqual(widths, new Set([1, CONFIG.vocabSize]), name);
        for (const { value } of graph.outputs) assert.equal(value.dtype, "float32");
        for (const { dtype } of graph.inputs) assert.notEqual(dtype, "bfloat16");
        assert.ok(graph.outputs.some((output) => output.name.startsWith(GRADIENT_PREFIX)));
      }
    }
  }
  assert.deepEqual(productDtypes(valueStepGraph(fullAdaptation(models.F32))), new Set(["float32"]));
});

test("bfloat16: weights that are stored so are multiplied as they are", () => {
  const graph = policyStepGraph(loraAdaptation(models.BF16, LORA, 1), { compute: "bfloat16" });
  const products = graph.nodes.filter(({ type }) => PRODUCTS.has(type)).flatMap(({ inputs }) => inputs);
  for (const { name, kind } of parameters(CONFIG)) {
    if (kind !== "matrix") continue;
    // the input of the first projections has no gradient
    const backward = /layers\.0\.self_attn\.[qkv]_proj/.test(name) ? 0 : 1;
    assert.equal(products.filter((input) => input === name).length, 1 + backward, name);
  }
});

test("bfloat16 gradients are those of float32 but for rounding, by rounding on a CPU", async () => {
  const model = fullAdaptation(models.F32);
  const trainer = new Trainer({ model: models.F32, threads: 1 });
  const batch = randomSamples(CONFIG.vocabSize, 8);
  const run = async (compute: "float32" | "rounded") => {
    const session = await Session.create(policyStepGraph(model, { compute }), { threads: 1 });
    trainer.policy.accumulate = (_, feeds) => Trainable.prototype.accumulate.call(trainer.policy, session, feeds);
    await trainer.updatePolicy(batch, STEP);
    await session.release();
    return trainer.policy.gradient!.data.slice();
  };
  const [exact, rounded] = [await run("float32"), await run("rounded")];
  await trainer.close();
  const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  const cosine = dot(exact, rounded) / Math.sqrt(dot(exact, exact) * dot(rounded, rounded));
  assert.ok(cosine > 0.999 && cosine < 1 - 1e-9, `${cosine}`);
  assert.ok(Math.abs(Math.sqrt(dot(rounded, rounded) / dot(exact, exact)) - 1) < 0.02);
});

test("bfloat16 and TF32 on a CPU are refused in one line", () => {
  for (const compute of ["bfloat16", "tf32"] as const)
    assert.throws(() => new Trainer({ model: models.F32, threads: 1, compute }), {
      code: "compute",
      message: new RegExp(`^compute is ${compute}, but [^\\n]* CUDA alone; set it to float32 on a CPU$`),
    });
  assert.doesNotThrow(() => {
    new Sessions(fullAdaptation(models.F32), { threads: 1, compute: "bfloat16", device: { kind: "cuda" } });
  });
});
