/** Training with everything on the device, on the CPU, against training in shared memory. */
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { adamwScalars } from "./adamw.ts";
import { DeviceMemory } from "./device-memory.ts";
import { type Engine, type EngineOptions, type PolicyStep, startEngine } from "./engine.ts";
import { Graph } from "./graph/graph.ts";
import { Parameters } from "./graph/parameters.ts";
import { add, cast } from "./graph/primitives.ts";
import { configJson, type ModelConfig } from "./model/config.ts";
import { saveWeights } from "./model/files.ts";
import { writeModelFolder } from "./model/folder.ts";
import { HALF_PREFIX, isMultiplied } from "./model/halved.ts";
import { fromStored, toStored } from "./model/halves.ts";
import { PROJECTIONS } from "./model/lora.ts";
import { WHOLE_VOCABULARY } from "./model/token-log-probs.ts";
import { initialWeights, parameters } from "./model/weights.ts";
import { HostMemory } from "./model-memory.ts";
import { createSession } from "./runtime/runtime.ts";
import { randomSamples } from "./samples.fixture.ts";
import { GRADIENT_PREFIX, HALF_GRADIENT_PREFIX, SUM_PREFIX } from "./steps.ts";
import { GradientSum, Trainable } from "./trainable.ts";
import { Trainer } from "./trainer.ts";

const CONFIG: ModelConfig = {
  ...{ modelType: "qwen2", vocabSize: 31, hiddenSize: 16, intermediateSize: 24, layers: 2 },
  ...{ heads: 4, keyValueHeads: 2, headSize: 8, normEpsilon: 1e-6, ropeTheta: 10000, tied: true },
  ...{ queryKeyValueBias: true, maxPositions: 64, initializerRange: 0.2 },
};
const ADAM = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01 };
const POLICY: PolicyStep = {
  ...{ learningRate: 0.01, gradientClip: 0, adam: ADAM, aggregation: "SeqMeanTokenMean", microBatchSize: 3 },
  temperature: 0.8,
  clipRatio: 0.2,
  clipRatioHigh: 0.28,
  dualClip: 0,
  entropyCoefficient: 0.01,
  klCoefficient: 0.1,
};
const VALUE = { ...POLICY, valueClip: 0.5 };

const LARGE_VOCABULARY = { ...CONFIG, vocabSize: WHOLE_VOCABULARY + 8, tied: false };
const LORA = { rank: 3, alpha: 6, targets: PROJECTIONS, seed: 5 };

let folder: string;
let model: string;
/** in bfloat16, with an output layer that is read in chunks */
let stored: string;
before(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "device-"));
  model = path.join(folder, "model");
  fs.mkdirSync(model);
  fs.writeFileSync(path.join(model, "config.json"), JSON.stringify(configJson(CONFIG, { eos_token_id: 0 })));
  writeModelFolder(model, model, CONFIG, initialWeights(CONFIG, 3));
  stored = path.join(folder, "stored");
  fs.mkdirSync(stored);
  fs.writeFileSync(path.join(stored, "config.json"), JSON.stringify(configJson(LARGE_VOCABULARY, { eos_token_id: 0 })));
  const weights = initialWeights(LARGE_VOCABULARY, 4);
  const tensors = parameters(LARGE_VOCABULARY).map((parameter) => ({
    ...parameter,
    read: () => weights.get(parameter.name)!,
  }));
  saveWeights(stored, tensors, { dtype: "BF16" });
});
after(() => fs.rmSync(folder, { recursive: true }));

async function withTrainer<T>(
  resident: boolean,
  work: (trainer: Trainer) => Promise<T>,
  options: Partial<EngineOptions> = {},
): Promise<T> {
  const trainer = new Trainer({ model, threads: 1, workers: 1, resident, ...options });
  try {
    return await work(trainer);
  } finally {
    await trainer.close();
  }
}

/** Runs steps in micro-batches of three. Returns their results and the state after them. */
async function train(trainer: Engine, { steps = 4, seed = 1, gradientClip = 0 } = {}) {
  const told = [];
  for (let step = 0; step < steps; step++) {
    const batch = randomSamples(CONFIG.vocabSize, 8, seed + step);
    told.push(await trainer.updateCritic(batch, { ...VALUE, gradientClip }));
    told.push(await trainer.updatePolicy(batch, { ...POLICY, gradientClip }));
  }
  return told;
}

/** All that an engine computes, in the order of a run's iteration. */
async function everything(trainer: Trainer, batch = randomSamples(CONFIG.vocabSize, 7, 99)) {
  const options = { temperature: 0.8, topP: 1, maxNewTokens: 20, seeds: batch.map((_, i) => i) };
  const look = async () => ({
    generated: await trainer.generate(
      batch.map(({ prompt }) => prompt),
      options,
    ),
    evaluated: await trainer.evaluate(batch, { temperature: 0.8, values: true }),
  });
  const before = await look();
  const told = await train(trainer);
  const pretrained = await trainer.pretrain(batch, POLICY);
  const after = await look();
  const reference = await trainer.generate([batch[0]!.prompt], { ...options, seeds: [1], weights: "reference" });
  return { before, told, pretrained, after, reference, again: await look(), digest: await trainer.digest() };
}

/** `gradientNorm` is a sum whose order is another one. */
function withoutNorms(results: { gradientNorm: number }[]): object[] {
  return results.map(({ gradientNorm, ...others }) => {
    assert.ok(gradientNorm > 0);
    return others;
  });
}

test("steps, evaluation, generation, weights and moments on a device have the same bits as in host memory", async () => {
  const here = await withTrainer(false, everything);
  const there = await withTrainer(true, everything);
  assert.deepEqual(withoutNorms(there.told), withoutNorms(here.told));
  for (const [i, { gradientNorm }] of there.told.entries())
    assert.ok(Math.abs(gradientNorm / here.told[i]!.gradientNorm - 1) < 1e-13);
  for (const part of ["before", "after", "reference", "again", "digest"] as const)
    assert.deepEqual(there[part], here[part]);
  assert.notDeepEqual(there.after.generated, there.before.generated);
  assert.equal(there.pretrained.loss, here.pretrained.loss);
});

test("adapters beside a frozen bfloat16 model on the device have the same bits as in host memory", async () => {
  const work = async (trainer: Trainer) => {
    const batch = randomSamples(CONFIG.vocabSize, 6, 98);
    const many = batch.map((sample, i) => ({ ...sample, prompt: batch[i - (i % 3)]!.prompt })); // three share one
    return everything(trainer, many);
  };
  const options = { model: stored, adapter: LORA };
  const here = await withTrainer(false, work, options);
  const there = await withTrainer(true, work, options);
  assert.deepEqual(withoutNorms(there.told), withoutNorms(here.told));
  for (const part of ["before", "after", "reference", "again", "digest"] as const)
    assert.deepEqual(there[part], here[part]);
  assert.notDeepEqual(there.after.generated, there.before.generated);
  assert.ok(there.before.generated.some(({ response }) => response.length === 20));
});

test("weights differ by rounding alone where gradients are clipped and layers are recomputed", async () => {
  const after = (resident: boolean) =>
    withTrainer(
      resident,
      async (trainer) => {
        const told = await train(trainer, { steps: 6, gradientClip: 0.1 });
        assert.ok(told.every(({ gradientNorm }) => gradientNorm > 0.1));
        await trainer.digest(); // brings weights here
        return { loss: told[0]!.loss, weights: [trainer.policy, trainer.critic!].map((it) => it.weights.data.slice()) };
      },
      { activationCheckpointing: "Always" },
    );
  const [here, there] = [await after(false), await after(true)];
  assert.equal(there.loss, here.loss);
  for (const [i, expected] of here.weights.entries()) {
    const worst = expected.reduce((most, x, at) => Math.max(most, Math.abs(x - there.weights[i]![at]!)), 0);
    assert.ok(worst <= 1e-6, `${worst}`);
  }
});

for (const [where, memory] of [
  ["in shared memory", new HostMemory()],
  ["on a device", new DeviceMemory({ threads: 1 })],
] as const)
  test(`a step with another model's gradient is refused ${where}`, async () => {
    const sum = new GradientSum(memory);
    const [a, b] = [1, 40].map((size) => {
      const shapes = [{ name: "w", shape: [size] }];
      return new Trainable(memory, sum, shapes, new Parameters(shapes).data);
    }) as [Trainable, Trainable];
    const g = new Graph("one");
    g.output("gradient of w", add(g.input("sum of w", "float32", ["size"]), 1));
    const session = memory instanceof DeviceMemory ? await memory.createSession(g, {}) : await createSession(g);
    const squares = (model: Trainable) => model.squares({ from: 0, to: model.length }, []);
    await a.accumulate(session, {});
    assert.equal(await squares(a), 1);
    for (let part = 0; part < 3; part++) await b.accumulate(session, {});
    await assert.rejects(squares(a), { code: "step", message: /another model's gradient/ });
    assert.equal(await squares(b), 40 * 9);
    await session.release();
    for (const model of [a, b]) model.release();
    sum.release();
    if (memory instanceof DeviceMemory) await memory.release();
  });

test("a bfloat16 graph reads copies of the newest matrices, and micro-batches add up its gradients", async () => {
  const memory = new DeviceMemory({ threads: 1, compute: "bfloat16" });
  const shapes = [
    { name: "model.norm.weight", shape: [3] },
    { name: "model.layers.0.mlp.up_proj.weight", shape: [5, 7] },
    { name: "model.layers.0.input_layernorm.weight", shape: [2] },
    { name: "model.layers.0.mlp.up_proj.lora_A.weight", shape: [1, 3] },
    { name: "lm_head.weight", shape: [2] },
  ];
  const weights = new Parameters(shapes);
  const sum = new GradientSum(memory);
  const model = new Trainable(memory, sum, shapes, weights.data);
  const start = weights.data.map((_, i) => 1 + i / 1000); // more bits than bfloat16 has
  weights.data.set(start);
  const g = new Graph("halves");
  for (const { name, shape } of shapes) {
    const matrix = isMultiplied(name);
    const weight = matrix ? g.input(HALF_PREFIX + name, "bfloat16", shape) : g.input(name, "float32", shape);
    // a graph marks its gradients; matrix gradients are of this micro-batch alone
    if (matrix) g.output(HALF_GRADIENT_PREFIX + name, weight);
    else g.output(GRADIENT_PREFIX + name, add(g.input(SUM_PREFIX + name, "float32", shape), weight));
    if (matrix) g.output(`seen ${name}`, cast(weight, "float32"));
  }
  const session = await memory.createSession(g, {});
  const whole = { from: 0, to: model.length };
  for (let step = 0; step < 2; step++) {
    if (step > 0) await model.fetch(whole, undefined); // the step has changed the weights there
    const rounded = (name: string) =>
      fromStored("BF16", toStored("BF16", weights.get(name).data as Float32Array).buffer as ArrayBuffer);
    model.zeroGradient();
    let squares = 0;
    for (let part = 0; part < 3; part++) {
      const seen = await model.accumulate(session, {});
      for (const { name } of shapes.filter((of) => isMultiplied(of.name)))
        assert.deepEqual(seen[`seen ${name}`]!.data, rounded(name), `${name}, step ${step}`);
    }
    for (const { name } of shapes) {
      const gradient = isMultiplied(name) ? rounded(name) : (weights.get(name).data as Float32Array);
      squares += gradient.reduce((sum, x) => sum + (3 * x) ** 2, 0);
    }
    const gradientNorm = Math.sqrt(await model.squares(whole, []));
    const scalars = adamwScalars(step + 1, { ...ADAM, learningRate: POLICY.learningRate, scale: 1 });
    await model.adamw(whole, scalars, { gradient: undefined, moments: undefined });
    assert.ok(Math.abs(gradientNorm / Math.sqrt(squares) - 1) < 1e-6, `${gradientNorm}, not ${Math.sqrt(squares)}`);
  }
  await model.fetch(whole, undefined);
  assert.notDeepEqual(weights.data, start);
  await session.release();
  model.release();
  sum.release();
  await memory.release();
});

test("an engine with weights on the device and one without read each other's checkpoints and go on alike", async () => {
  const directories = { here: path.join(folder, "here"), there: path.join(folder, "there") };
  const goOn = async (trainer: Engine) => {
    await train(trainer, { steps: 2, seed: 20 });
    return trainer.digest();
  };
  const ends: string[] = [];
  for (const [name, resident] of [
    ["here", false],
    ["there", true],
  ] as const) {
    await withTrainer(resident, async (trainer) => {
      await train(trainer);
      await trainer.save(directories[name]);
      ends.push(await goOn(trainer));
      await trainer.load(directories[name]); // back, in the same engine
      ends.push(await goOn(trainer));
    });
  }
  for (const file of fs.readdirSync(directories.here, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const name = path.relative(directories.here, path.join(file.parentPath, file.name));
    const [a, b] = [directories.here, directories.there].map((it) => fs.readFileSync(path.join(it, name)));
    assert.equal(Buffer.compare(a!, b!), 0, name);
  }
  const engine = await startEngine({ model, threads: 1, resident: true }); // and it works in a worker
  await engine.load(directories.here);
  ends.push(await goOn(engine));
  await engine.close();
  await withTrainer(false, async (trainer) => {
    await trainer.load(directories.there);
    ends.push(await goOn(trainer));
  });
  assert.equal(new Set(ends).size, 1, ends.join("\n"));
});

test("a checkpoint without moments and critic removes them from the device", async () => {
  const directory = path.join(folder, "fresh");
  const ends: string[] = [];
  for (const resident of [false, true]) {
    await withTrainer(resident, async (trainer) => {
      const { digest } = await trainer.save(directory);
      await train(trainer, { steps: 2 });
      await trainer.load(directory);
      assert.equal(await trainer.digest(), digest);
      assert.equal(trainer.critic, undefined);
      await train(trainer, { steps: 2 });
      ends.push(await trainer.digest());
    });
  }
  assert.equal(ends[0], ends[1]);
});

test("a gradient that is not finite skips the step and changes nothing on the device", async () => {
  await withTrainer(true, async (trainer) => {
    const batch = randomSamples(CONFIG.vocabSize, 4);
    await trainer.updatePolicy(batch, POLICY);
    const digest = await trainer.digest();
    batch[2]!.advantages[0] = Number.NaN;
    assert.equal((await trainer.updatePolicy(batch, POLICY)).skipped, true);
    assert.equal(await trainer.digest(), digest);
    batch[2]!.advantages[0] = 1;
    assert.equal((await trainer.updatePolicy(batch, POLICY)).skipped, false);
    assert.notEqual(await trainer.digest(), digest);
  });
});
