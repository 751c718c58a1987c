import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Algorithm } from "../../crds/trainingrun.ts";
import { configJson, type ModelConfig } from "../engine/model/config.ts";
import { writeModelFolder } from "../engine/model/folder.ts";
import { initialWeights } from "../engine/model/weights.ts";
import { Trainer } from "../engine/trainer.ts";
import { CPU_DEVIATION_LIMITS } from "./deviation.ts";
import { type TrainingSample, type UpdateContext, update } from "./update.ts";

// Whole updates of a tiny policy by each algorithm.

const CONFIG: ModelConfig = {
  modelType: "qwen2",
  vocabSize: 12,
  hiddenSize: 16,
  intermediateSize: 24,
  layers: 1,
  heads: 2,
  keyValueHeads: 1,
  headSize: 8,
  normEpsilon: 1e-6,
  ropeTheta: 10000,
  tied: true,
  queryKeyValueBias: true,
  maxPositions: 32,
  initializerRange: 0.2,
};
const GROUP = 4;
const ALGORITHM = {
  miniBatchSize: 16,
  microBatchSize: 16,
  groupSize: GROUP,
  scaleByGroupStd: true,
  whitening: "Auto",
  klPlacement: "Auto",
  klCoefficient: 0.001,
  ppoEpochs: 1,
  learningRate: 0.02,
  criticLearningRate: 0.02,
  learningRateSchedule: { type: "Constant", warmupIterations: 0, minimumRatio: 0 },
  clipRatio: 0.2,
  dualClip: 3,
  valueClip: 0,
  entropyCoefficient: 0.001,
  gamma: 1,
  lambda: 1,
  gradientClip: 1,
  adamBeta1: 0.9,
  adamBeta2: 0.999,
  adamEpsilon: 1e-8,
  weightDecay: 0.01,
  aggregation: "SeqMeanTokenMean",
  validScoreWeight: 0,
  importanceCap: 2,
  criticWarmupIterations: 0,
  durationWeighting: "Paper",
  startupSeconds: 1,
  timeoutWeight: "Full",
  maxStaleness: 2,
  stalenessPolicy: "Wait",
} as unknown as Algorithm;

let model: string;
before(() => {
  model = fs.mkdtempSync(path.join(os.tmpdir(), "algorithms-"));
  fs.writeFileSync(path.join(model, "config.json"), JSON.stringify(configJson(CONFIG, { eos_token_id: 0 })));
  writeModelFolder(model, model, CONFIG, initialWeights(CONFIG, 3));
});
after(() => fs.rmSync(model, { recursive: true }));

const context = (iteration: number): UpdateContext => ({
  seed: 1,
  iteration,
  iterations: 25,
  temperature: 1,
  maxResponseTokens: 6,
  abandonedSeconds: [],
  durationClock: "Wall",
});

/** Four prompts, a group each. The reward is -10, but for each token below 4 one more; longer responses take longer. */
async function rollout(trainer: Trainer, iteration: number): Promise<TrainingSample[]> {
  const prompts = Array.from({ length: 16 }, (_, i) => Int32Array.of(1 + Math.floor(i / GROUP), 7));
  const seeds = prompts.map((_, i) => 1000 * iteration + i);
  const options = { seeds, temperature: 1, topP: 1, maxNewTokens: 6 };
  const generated = await trainer.generate(prompts, options);
  return generated.map(({ response, logProbs }, i) => ({
    task: "t",
    group: `${Math.floor(i / GROUP)}`,
    prompt: prompts[i]!,
    response,
    behaviourLogProbs: logProbs,
    reward: -10 + response.filter((token) => token > 0 && token < 4).length,
    onPolicy: true,
    outcome: "completed",
    durationSeconds: response.length / 10,
  }));
}

test("samples of other weights or another temperature end the run", async () => {
  const trainer = new Trainer({ model, threads: 1 });
  const batch = await rollout(trainer, 1);
  const grpo = { ...ALGORITHM, baseline: "GRPO", learningRate: 0.05 } as const;
  const limited = { ...context(1), deviationLimits: CPU_DEVIATION_LIMITS };
  const hot = { ...limited, temperature: 1.3 };
  const isDeviation = { name: "UpdateError", code: "deviation" };
  await assert.rejects(update(trainer, batch, grpo, hot), isDeviation);
  const healthy = await update(trainer, batch, grpo, limited);
  assert.equal(healthy.importanceDeviates, false);
  assert.ok(healthy.importanceMaxDeviation! < 1e-4, `${healthy.importanceMaxDeviation}`);
  await assert.rejects(update(trainer, batch, grpo, limited), isDeviation, "the weights have moved");
  const again = await update(trainer, await rollout(trainer, 2), grpo, { ...limited, iteration: 2 });
  assert.equal(again.importanceDeviates, false);
  await trainer.close();
});

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

const BASELINES: [name: string, Partial<Algorithm>][] = [
  ["PPO", { baseline: "Critic" }],
  ["BatchMean", { baseline: "BatchMean" }],
  ["GRPO", { baseline: "GRPO" }],
  ["Dr. GRPO", { baseline: "GRPO", scaleByGroupStd: false, aggregation: "SeqMeanTokenSumNorm" }],
  ["RLOO", { baseline: "RLOO" }],
];

for (const [name, own] of BASELINES) {
  test(`${name} raises the reward`, async () => {
    const trainer = new Trainer({ model, threads: 1, critic: own.baseline === "Critic" });
    const rewards: number[] = [];
    for (let iteration = 1; iteration <= 25; iteration++) {
      const batch = await rollout(trainer, iteration);
      rewards.push(mean(batch.map(({ reward }) => reward)));
      await update(trainer, batch, { ...ALGORITHM, ...own }, context(iteration));
    }
    const [start, end] = [mean(rewards.slice(0, 3)), mean(rewards.slice(-3))];
    assert.ok(end > start + 1.5, `${start} -> ${end}: ${rewards.map((reward) => reward.toFixed(1))}`);
    assert.equal(trainer.critic !== undefined, own.baseline === "Critic");
    await trainer.close();
  });

  test(`micro-batches of any size add up to one update with ${name} and any aggregation`, async () => {
    const trainer = new Trainer({ model, threads: 1 });
    const batch = await rollout(trainer, 1);
    // Off policy, so that ratios, clips and importance weights matter.
    for (const sample of batch)
      sample.behaviourLogProbs = sample.behaviourLogProbs.map((x, t) => x + 0.3 * (t % 3) - 0.2);
    const critic: Float32Array[] = []; // the policy's gradient takes its place
    const updateCritic = trainer.updateCritic.bind(trainer);
    trainer.updateCritic = async (...step) => {
      const result = await updateCritic(...step);
      critic.splice(0, 1, trainer.critic!.gradient!.data.slice());
      return result;
    };
    for (const aggregation of ["SeqMeanTokenMean", "TokenMean", "SeqMeanTokenSumNorm"] as const) {
      const gradients = async (microBatchSize: number) => {
        const still = { learningRate: 0, criticLearningRate: 0, aggregation, microBatchSize };
        await update(trainer, batch, { ...ALGORITHM, ...own, ...still }, context(1));
        return [trainer.policy.gradient!.data.slice(), ...critic];
      };
      const whole = await gradients(16);
      for (const microBatchSize of [1, 3, 5]) {
        const parts = await gradients(microBatchSize);
        for (const [i, gradient] of whole.entries()) {
          const largest = gradient.reduce((max, x) => Math.max(max, Math.abs(x)), 0);
          const worst = parts[i]!.reduce((max, x, j) => Math.max(max, Math.abs(x - gradient[j]!)), 0);
          assert.ok(
            largest > 0 && worst <= 4e-6 * largest,
            `${aggregation}, ${microBatchSize}: ${worst} of ${largest}`,
          );
        }
      }
    }
    await trainer.close();
  });
}

test("a task's rewards change another task's gradient only if normalizeBy is Batch", async () => {
  const trainer = new Trainer({ model, threads: 1 });
  const rolled = await rollout(trainer, 1);
  /** Returns the gradient from task a alone: programs of task b took no time, so their weight is 0. */
  const gradient = async (normalizeBy: "Task" | "Batch", scale: number) => {
    const batch = rolled.map((sample, i): TrainingSample => {
      return i % 2 === 0 ? sample : { ...sample, task: "b", reward: scale * sample.reward, durationSeconds: 0 };
    });
    const still = {
      learningRate: 0,
      entropyCoefficient: 0,
      startupSeconds: 0,
      gradientClip: 1e9,
      normalizeBy,
    } as const;
    await update(trainer, batch, { ...ALGORITHM, baseline: "BatchMean", klCoefficient: 0, ...still }, context(1));
    return trainer.policy.gradient!.data.slice();
  };
  const cosine = (a: Float32Array, b: Float32Array) => {
    const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
    return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
  };
  const alone = await gradient("Task", 1);
  assert.deepEqual(await gradient("Task", 1000), alone);
  const [near, far] = [await gradient("Batch", 1), await gradient("Batch", 1000)];
  assert.ok(cosine(alone, near) > 0.9, "rewards of one scale");
  assert.ok(cosine(alone, far) < 0.5, "b's scale decides where a's gradient points");
  await trainer.close();
});
