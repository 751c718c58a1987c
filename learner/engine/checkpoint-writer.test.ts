import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { CheckpointWriter } from "./checkpoint-writer.ts";
import { type PretrainStep, startEngine } from "./engine.ts";
import type { ModelConfig } from "./model/config.ts";
import { toStored } from "./model/halves.ts";
import { readHeader, readPart } from "./model/safetensors.ts";
import { randomSamples } from "./samples.fixture.ts";
import { tinyModel } from "./tiny-model.fixture.ts";
import { Trainer } from "./trainer.ts";

const CONFIG: ModelConfig = {
  ...{ modelType: "qwen2", vocabSize: 31, hiddenSize: 16, intermediateSize: 24, layers: 2 },
  ...{ heads: 4, keyValueHeads: 2, headSize: 8, normEpsilon: 1e-6, ropeTheta: 10000, tied: true },
  ...{ queryKeyValueBias: true, maxPositions: 64, initializerRange: 0.2 },
};
const PRETRAIN: PretrainStep = {
  ...{ learningRate: 0.01, gradientClip: 1, aggregation: "TokenMean", microBatchSize: 8 },
  adam: { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01 },
};

const { folder, model } = tinyModel(CONFIG);

const batch = () => randomSamples(CONFIG.vocabSize, 6);
const values = () => batch().map((sample) => ({ ...sample, oldValues: sample.advantages, returns: sample.advantages }));

test("a checkpoint has the weights of the time of its request; meanwhile generation goes on and steps wait", async () => {
  const directory = path.join(folder, "snapshot");
  const engine = await startEngine({ model, threads: 1 });
  const prompts = batch().map(({ prompt }) => prompt);
  const options = { seeds: prompts.map((_, i) => i), temperature: 1, topP: 1, maxNewTokens: 2 };
  await engine.updateCritic(values(), { ...PRETRAIN, valueClip: 0 });
  await engine.pretrain(batch(), PRETRAIN);
  await engine.generate(prompts, options);
  const before = await engine.digest();
  const order: string[] = [];
  const saving = engine.save(directory, () => order.push("taken"));
  const all = [
    saving.then(() => order.push("written")),
    engine.generate(prompts, options).then(() => order.push("generated")),
    engine.updateCritic(values(), { ...PRETRAIN, valueClip: 0 }).then(() => order.push("critic's step")),
    engine.pretrain(batch(), PRETRAIN).then(() => order.push("policy's step")),
  ];
  await Promise.all(all);
  assert.deepEqual(order, ["taken", "generated", "written", "critic's step", "policy's step"]);
  assert.equal((await saving).digest, before);
  assert.notEqual(await engine.digest(), before);
  const again = engine.save(path.join(folder, "again"));
  await engine.load(directory);
  assert.equal(await engine.digest(), before);
  assert.notEqual((await again).digest, before, "a checkpoint is read after the previous one is written");
  await engine.close();
});

test("a checkpoint of a bfloat16 run restores the float32 weights bit for bit", async () => {
  const directory = path.join(folder, "rounded");
  const digests: string[] = [];
  const trainer = new Trainer({ model, threads: 1 });
  await trainer.updateCritic(values(), { ...PRETRAIN, valueClip: 0 });
  for (let i = 0; i < 2; i++) await trainer.pretrain(batch(), PRETRAIN);
  digests.push(await trainer.digest());
  const writer = new CheckpointWriter({ model, threads: 1, compute: "bfloat16" });
  digests.push(writer.write(directory, { policy: trainer.policy.saved, critic: trainer.critic?.saved }));
  const policy = path.join(directory, "policy");
  assert.equal(JSON.parse(fs.readFileSync(path.join(policy, "config.json"), "utf8")).dtype, "bfloat16");
  for (const { name, dtype, file, offset, length } of readHeader(path.join(policy, "model.safetensors")).tensors) {
    assert.equal(dtype, "BF16");
    const stored = new Uint8Array(length);
    readPart(file, stored, offset);
    assert.deepEqual(stored, toStored("BF16", trainer.policy.weights.get(name).data as Float32Array), name);
  }
  await trainer.close();
  const other = new Trainer({ model, threads: 1 });
  await other.load(directory);
  digests.push(await other.digest());
  await other.close();
  assert.equal(new Set(digests).size, 1, digests.join("\n"));
});

test("a checkpoint that does not fit on the disk is refused with both sizes, and no file is written", async (t) => {
  const directory = path.join(folder, "full");
  const trainer = new Trainer({ model, threads: 1 });
  await trainer.pretrain(batch(), PRETRAIN);
  const { size } = trainer.policy.weights.shapes.reduce(
    (total, { shape }) => ({ size: total.size + shape.reduce((a, b) => a * b, 1) }),
    { size: 0 },
  );
  const free = t.mock.method(fs, "statfsSync", () => ({ bavail: 12 * size - 1, bsize: 1 }) as fs.StatsFs);
  await assert.rejects(trainer.save(directory), (error: Error & { code?: string }) => {
    assert.equal(error.code, "diskFull");
    assert.match(error.message, /^a checkpoint takes [\d.]+ kB, but [\d.]+ kB are free at .*full$/);
    return true;
  });
  assert.equal(fs.existsSync(directory), false);
  free.mock.mockImplementation(() => ({ bavail: 12 * size, bsize: 1 }) as fs.StatsFs);
  await trainer.save(directory);
  await trainer.close();
});
