/** Weights rounded to bfloat16 on a device, float32 ones in this process's memory: on the CPU, where the same kernels run. */
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { adamwScalars, newMoments } from "./adamw.ts";
import { type Adaptation, fullAdaptation, type Role, trainedShapes } from "./adaptation.ts";
import { DeviceMemory } from "./device-memory.ts";
import { Exchange } from "./exchange.ts";
import { Graph } from "./graph/graph.ts";
import { Parameters } from "./graph/parameters.ts";
import { add, cast, mul } from "./graph/primitives.ts";
import { type Tensor, tensor } from "./graph/tensor.ts";
import { configJson, type ModelConfig } from "./model/config.ts";
import { HALF_PREFIX, isMultiplied } from "./model/halved.ts";
import { fromStored, toStored } from "./model/halves.ts";
import type { Range } from "./model-memory.ts";
import { GRADIENT_PREFIX, HALF_GRADIENT_PREFIX, SUM_PREFIX } from "./steps.ts";
import { GradientSum, Trainable } from "./trainable.ts";

const CONFIG: ModelConfig = {
  ...{ modelType: "qwen2", vocabSize: 31, hiddenSize: 16, intermediateSize: 24, layers: 2 },
  ...{ heads: 4, keyValueHeads: 2, headSize: 8, normEpsilon: 1e-6, ropeTheta: 10000, tied: true },
  ...{ queryKeyValueBias: true, maxPositions: 64, initializerRange: 0.2 },
};
const ADAM = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0 };
const MICRO_BATCHES = 8;

let folder: string;
let model: Adaptation;
before(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "rounded-"));
  fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(CONFIG, { eos_token_id: 0 })));
  model = fullAdaptation(folder);
});
after(() => fs.rmSync(folder, { recursive: true }));

/** A gradient of `factor` times each weight as graphs read it, and the matrices that were read. */
function timesFactor(role: Role): Graph {
  const g = new Graph("times_factor");
  const factor = g.input("factor", "float32", []);
  for (const { name, shape } of trainedShapes(model, role)) {
    if (isMultiplied(name)) {
      const wide = cast(g.input(HALF_PREFIX + name, "bfloat16", shape), "float32");
      g.output(HALF_GRADIENT_PREFIX + name, cast(mul(wide, factor), "bfloat16"));
      g.output(`read ${name}`, add(wide, 0));
    } else {
      const gradient = mul(g.input(name, "float32", shape), factor);
      g.output(GRADIENT_PREFIX + name, add(g.input(SUM_PREFIX + name, "float32", shape), gradient));
    }
  }
  return g;
}

async function withWorker<T>(swaps: boolean, use: (memory: DeviceMemory, sum: GradientSum) => Promise<T>): Promise<T> {
  const memory = new DeviceMemory({ threads: 1, compute: "bfloat16", offloads: true, swaps }, model);
  const sum = new GradientSum(memory);
  try {
    return await use(memory, sum);
  } finally {
    sum.release();
    await memory.release();
  }
}

type How = { steps: number; learningRate: number; stepped?: (range: Range, state: readonly Float32Array[]) => void };

/** Steps on eight micro-batches each, as the pool takes them. @param stepped called after each worker's part of a step */
async function train(count: number, { steps, learningRate, stepped = () => {} }: How) {
  const shapes = trainedShapes(model, "policy");
  const weights = new Parameters(shapes);
  weights.data.forEach((_, i) => {
    weights.data[i] = (i % 2 ? 1 : -1) * (1 + (i % 97) / 1000);
  });
  const start = weights.data.slice();
  const moments = newMoments(weights.data.length);
  const memories = Array.from(
    { length: count },
    () => new DeviceMemory({ threads: 1, compute: "bfloat16", offloads: true }, model),
  );
  const workers = memories.map((memory) => new Trainable(memory, new GradientSum(memory), shapes, weights.data));
  const calls = workers.map((worker) => ({
    addGradient: (_: Role, piece: Range, total: Float32Array, isFirst: boolean) =>
      worker.addGradient(piece, total, isFirst),
    prepareStep: (_: Role, range: Range, total: Float32Array) => worker.prepareStep(range, total, undefined),
    shareWeights: (_: Role, range: Range) => worker.shareWeights(range),
    takeWeights: (_: Role, range: Range) => worker.takeWeights(range),
  }));
  const border = (i: number) => 4 * Math.floor((i * weights.data.length) / (4 * count));
  const ranges = workers.map((_, i) => ({ from: border(i), to: border(i + 1) }));
  const all = calls.map((worker, i) => ({ worker, range: ranges[i]! }));
  const exchange = new Exchange();
  const sessions = await Promise.all(memories.map((memory) => memory.createSession(timesFactor("policy"), {})));
  let read: Record<string, Tensor> = {};
  for (let step = 1; step <= steps; step++) {
    for (const worker of workers) worker.zeroGradient();
    for (let i = 0; i < MICRO_BATCHES; i++) {
      const factor = tensor(Float32Array.of(1 + i / 7), []);
      read = await workers[i % count]!.accumulate(sessions[i % count]!, { factor });
    }
    if (count > 1) await exchange.gradient("policy", weights.data.length, calls, all, undefined);
    const scalars = adamwScalars(step, { ...ADAM, learningRate, scale: 1 });
    for (const [i, worker] of workers.entries()) {
      await worker.adamw(ranges[i]!, scalars, { gradient: undefined, moments });
      stepped(ranges[i]!, [weights.data, moments.first, moments.second]);
    }
    if (count > 1) await exchange.weights("policy", all);
  }
  for (const session of sessions) await session.release();
  for (const worker of workers) worker.release();
  for (const memory of memories) await memory.release();
  return { start, weights, moments, read };
}

const worst = (a: Float32Array, b: Float32Array) => a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i]!)), 0);

for (const count of [2, 4, 8])
  test(`float32 weights and moments of ${count} workers equal one worker's to 1e-6`, async () => {
    const how = { steps: 5, learningRate: 0.01 };
    const [one, several] = [await train(1, how), await train(count, how)];
    assert.ok(worst(one.weights.data, one.start) > 0.01);
    assert.ok(worst(several.weights.data, one.weights.data) <= 1e-6);
    assert.ok(
      worst(several.moments.first, one.moments.first) <=
        1e-5 * worst(one.moments.first, new Float32Array(one.start.length)),
    );
  });

test("each worker steps its own part of the weights and moments, which are in host memory once", async () => {
  const parts: Range[] = [];
  let before: Float32Array[] | undefined;
  const stepped = (range: Range, state: readonly Float32Array[]) => {
    const changed = (numbers: Float32Array, i: number) =>
      [...numbers.keys()].filter((at) => numbers[at] !== before![i]![at]);
    for (const [i, numbers] of state.entries()) {
      const here = before ? changed(numbers, i) : [];
      assert.ok(here.every((at) => at >= range.from && at < range.to));
      assert.ok(!before || here.length > 0.9 * (range.to - range.from), `${here.length} of ${JSON.stringify(range)}`);
    }
    before = state.map((numbers) => numbers.slice());
    parts.push(range);
  };
  await train(4, { steps: 2, learningRate: 0.01, stepped });
  const ends = parts.slice(0, 4).map(({ to }) => to);
  assert.deepEqual(
    parts.slice(0, 4).map(({ from }) => from),
    [0, ...ends.slice(0, -1)],
  );
});

test("updates that are smaller than bfloat16's rounding add up, until the graphs read other weights", async () => {
  const rounded = (data: Float32Array) => fromStored("BF16", toStored("BF16", data).buffer as ArrayBuffer);
  const few = await train(2, { steps: 2, learningRate: 4e-5 });
  const many = await train(2, { steps: 100, learningRate: 4e-5 });
  for (const { weights, start, steps } of [
    { ...few, steps: 2 },
    { ...many, steps: 100 },
  ])
    assert.ok(Math.abs(worst(weights.data, start) / (steps * 4e-5) - 1) < 0.05, `${worst(weights.data, start)}`);
  const matrices = few.weights.shapes.filter(({ name }) => isMultiplied(name)).map(({ name }) => name);
  const changed = ({ start, weights, read }: typeof few) =>
    matrices.reduce((count, name) => {
      const before = rounded(weights.over(start).get(name).data as Float32Array);
      return count + before.filter((x, i) => x !== read[`read ${name}`]!.data[i]).length;
    }, 0);
  assert.ok(changed(few) < 100 && changed(many) > 10 * changed(few) + 500, `${changed(few)}, ${changed(many)}`);
});

for (const swaps of [false, true])
  test(`each model's graphs read its own newest weights${swaps ? ", of which a device has one at a time" : ""}`, async () => {
    await withWorker(swaps, async (memory, sum) => {
      const roles = ["policy", "critic"] as const;
      const models = roles.map((role, i) => {
        const weights = new Parameters(trainedShapes(model, role));
        weights.data.fill(i + 1);
        return { role, weights, trainable: new Trainable(memory, sum, weights.shapes, weights.data) };
      });
      const sessions = await Promise.all(roles.map((role) => memory.createSession(timesFactor(role), {})));
      for (let round = 0; round < 3; round++)
        for (const [i, { role, weights, trainable }] of models.entries()) {
          weights.data.fill(10 * round + i + 1);
          trainable.markHostDirty();
          trainable.zeroGradient();
          const read = await trainable.accumulate(sessions[i]!, { factor: tensor(Float32Array.of(2), []) });
          assert.deepEqual(
            [...new Set(Object.values(read).flatMap(({ data }) => [...(data as Float32Array)]))],
            [10 * round + i + 1],
          );
          const scale = 2 * (10 * round + i + 1);
          const numbers = weights.shapes.reduce((count, { shape }) => count + shape.reduce((a, b) => a * b, 1), 0);
          const squares = await trainable.squares({ from: 0, to: trainable.length }, []);
          assert.ok(Math.abs(squares / (scale ** 2 * numbers) - 1) < 0.05, `${role}: ${squares}`);
        }
      for (const session of sessions) await session.release();
      for (const { trainable } of models) trainable.release();
    });
  });
