import assert from "node:assert/strict";
import { test } from "node:test";
import type { Remote } from "./calls.ts";
import type { Step } from "./engine.ts";
import type { EngineWorker } from "./engine-worker.ts";
import { tensor } from "./graph/tensor.ts";
import { HostMemory } from "./model-memory.ts";
import { ModelState } from "./model-state.ts";
import { Workers } from "./workers.ts";

const STEP: Step = {
  ...{ learningRate: 0.1, gradientClip: 1, aggregation: "TokenMean", microBatchSize: 1 },
  adam: { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0 },
};
const SHAPES = [{ name: "w", shape: [16] }];
const FEEDS = [{ ids: tensor(Int32Array.of(1)) }];

/** Makes two workers that return these gradients and record later calls. @param take called for each part of a step */
function workersWith(gradients: Float32Array[], take = () => {}) {
  const asked: string[] = [];
  const memory = new HostMemory();
  const start = () => {
    const gradient = gradients[started++ % gradients.length]!;
    const calls: Partial<Remote<EngineWorker>> = {
      run: async () => ({ outputs: [{}], gradient }),
      squares: async (_role, range, [total, ...others]) =>
        memory.squares(await memory.hold(total!.length, total), range, others),
      adamw: async (_role, { from, to }, { stepSize }) => {
        take();
        asked.push(`adamw ${from} to ${to}, ${stepSize > 0}`);
      },
    };
    return calls as Remote<EngineWorker>;
  };
  let started = 0;
  return { workers: new Workers({ model: "", threads: 2, workers: 2 }, undefined, start), asked };
}

const shared = (value: number) => new Float32Array(new SharedArrayBuffer(64)).fill(value);

test("gradients of all workers are added, and each worker takes a part of the step", async () => {
  const { workers, asked } = workersWith([shared(3), shared(4)]);
  const model = new ModelState(SHAPES);
  const { done } = await workers.step("policyStep", "policy", model, [...FEEDS, ...FEEDS], STEP);
  assert.deepEqual(done, { gradientNorm: Math.sqrt(16 * 49), skipped: false });
  assert.deepEqual([...model.gradient!.data], new Array(16).fill(7));
  assert.deepEqual(asked, ["adamw 0 to 8, true", "adamw 8 to 16, true"]);
  assert.equal(model.steps, 1);
});

test("a gradient that overflows in one worker changes nothing", async () => {
  for (const value of [Number.POSITIVE_INFINITY, Number.NaN]) {
    const overflown = shared(0);
    overflown[9] = value;
    const { workers, asked } = workersWith([shared(1), overflown]);
    const model = new ModelState(SHAPES);
    const { done } = await workers.step("policyStep", "policy", model, [...FEEDS, ...FEEDS], STEP);
    assert.deepEqual(done, { gradientNorm: value, skipped: true });
    assert.deepEqual([asked, model.steps, model.moments], [[], 0, undefined]);
  }
});

test("a failed step does not count, and the next step has its number", async () => {
  const { workers } = workersWith([shared(1), shared(1)], () => {
    throw new Error("full");
  });
  const model = new ModelState(SHAPES);
  await assert.rejects(workers.step("policyStep", "policy", model, FEEDS, STEP), /full/);
  assert.equal(model.steps, 0);
});

test("without micro-batches there is no gradient and no step", async () => {
  const { workers, asked } = workersWith([shared(1)]);
  const model = new ModelState(SHAPES);
  assert.deepEqual(await workers.step("policyStep", "policy", model, [], STEP), {
    outputs: [],
    done: { gradientNorm: 0, skipped: true },
  });
  assert.deepEqual(asked, []);
});
