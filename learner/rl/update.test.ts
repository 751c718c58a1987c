import assert from "node:assert/strict";
import { test } from "node:test";
import type { Algorithm } from "../../crds/trainingrun.ts";
import type { Engine, PolicySample, PolicyStep, ValueSample, ValueStep } from "../engine/engine.ts";
import { type TrainingSample, type UpdateContext, update } from "./update.ts";

const ALGORITHM = {
  baseline: "Critic",
  batchSize: 4,
  miniBatchSize: 4,
  microBatchSize: 4,
  groupSize: 2,
  scaleByGroupStd: true,
  whitening: "Auto",
  klPlacement: "Auto",
  klCoefficient: 0.5,
  maxStaleness: 2,
  stalenessPolicy: "Wait",
  ppoEpochs: 1,
  learningRate: 0.5,
  criticLearningRate: 0.25,
  learningRateSchedule: { type: "Constant", warmupIterations: 0, minimumRatio: 0 },
  clipRatio: 0.2,
  dualClip: 0,
  valueClip: 0.5,
  entropyCoefficient: 0.001,
  gamma: 1,
  lambda: 1,
  gradientClip: 1,
  adamBeta1: 0.9,
  adamBeta2: 0.999,
  adamEpsilon: 1e-8,
  weightDecay: 0,
  aggregation: "SeqMeanTokenMean",
  validScoreWeight: 0,
  importanceCap: 2,
  criticWarmupIterations: 0,
  durationWeighting: "Paper",
  durationCap: 10,
  startupSeconds: 0,
  timeoutWeight: "Full",
} as unknown as Algorithm;

const CONTEXT: UpdateContext = {
  seed: 1,
  iteration: 3,
  iterations: 10,
  temperature: 1,
  maxResponseTokens: 8,
  abandonedSeconds: [],
  durationClock: "Wall",
};

/** Rewards 1, 3 in group a and -10, -9 in group b; programs of 1, 3, 2 and 2 seconds. */
const BATCH: TrainingSample[] = (
  [
    ["a", 1, 1],
    ["a", 3, 3],
    ["b", -10, 2],
    ["b", -9, 2],
  ] as const
).map(([group, reward, durationSeconds], i) => ({
  task: "t",
  group,
  prompt: Int32Array.of(1),
  response: Int32Array.from({ length: 2 }, () => i),
  behaviourLogProbs: Float32Array.of(-1, -1),
  reward,
  onPolicy: true,
  outcome: "completed",
  durationSeconds,
}));

/** Log-probs are -1 everywhere, the reference's lie 0.25 below. */
async function updated(change: Partial<Algorithm>, batch = BATCH, context: Partial<UpdateContext> = {}) {
  const calls: string[] = [];
  const policy: { samples: PolicySample[]; step: PolicyStep }[] = [];
  const critic: { samples: ValueSample[]; step: ValueStep }[] = [];
  const engine = {
    initializeCritic: async (value: number) => void calls.push(`initializeCritic ${value}`),
    evaluate: async (sequences: TrainingSample[], { values }: { values: boolean }) => {
      calls.push(`evaluate${values ? " with values" : ""}`);
      return sequences.map(({ response }) => ({
        logProbs: new Float32Array(response.length).fill(-1),
        referenceLogProbs: new Float32Array(response.length).fill(-1.25),
        values: new Float32Array(response.length),
        entropies: new Float32Array(response.length).fill(0.5),
      }));
    },
    updatePolicy: async (samples: PolicySample[], step: PolicyStep) => {
      policy.push({ samples: samples.toSorted((a, b) => a.response[0]! - b.response[0]!), step });
      return {};
    },
    updateCritic: async (samples: ValueSample[], step: ValueStep) => {
      critic.push({ samples, step });
      return {};
    },
  } as unknown as Engine;
  const result = await update(engine, batch, { ...ALGORITHM, ...change }, { ...CONTEXT, ...context });
  const advantages = policy[0]?.samples.map((sample) => [...sample.advantages]);
  return { result, calls, policy, critic, advantages };
}

const close = (actual: number[][] | undefined, expected: number[], tolerance = 1e-5) => {
  for (const [i, value] of expected.entries())
    for (const advantage of actual![i]!)
      assert.ok(Math.abs(advantage - value) < tolerance, `${actual} is not ${expected}`);
};

test("the baseline Critic alone has a critic", async () => {
  const { calls, critic } = await updated({});
  assert.deepEqual(calls, ["initializeCritic -3.75", "evaluate with values"]);
  assert.equal(critic.length, 1);
  for (const baseline of ["BatchMean", "GRPO", "RLOO"] as const) {
    const without = await updated({ baseline });
    assert.deepEqual(without.calls, ["evaluate"], baseline);
    assert.deepEqual([without.critic.length, without.policy.length], [0, 1]);
  }
});

test("the policy's steps have the algorithm's clips", async () => {
  const clips = async (change: Partial<Algorithm>) => {
    const { clipRatio, clipRatioHigh } = (await updated(change)).policy[0]!.step;
    return [clipRatio, clipRatioHigh];
  };
  assert.deepEqual(await clips({}), [0.2, undefined]);
  assert.deepEqual(await clips({ clipRatioHigh: 0.28 }), [0.2, 0.28]);
});

test("GRPO takes the group's deviations without whitening and has KL in the loss", async () => {
  // Group b has one reward, and responses of different KL, which must not count.
  const batch = BATCH.map((sample, i) => (i === 2 ? { ...sample, response: Int32Array.of(2), reward: -9 } : sample));
  const { advantages, policy, result } = await updated({ baseline: "GRPO" }, batch);
  close(advantages, [-Math.SQRT1_2, Math.SQRT1_2, 0, 0]);
  assert.equal(policy[0]!.step.klCoefficient, 0.5);
  assert.deepEqual(policy[0]!.samples[0]!.referenceLogProbs, Float32Array.of(-1.25, -1.25));
  assert.equal(result.zeroSpreadShare, 0.5);
});

test("Dr. GRPO takes distances from the group's mean and divides by maxResponseTokens", async () => {
  const drGrpo = { baseline: "GRPO", scaleByGroupStd: false, aggregation: "SeqMeanTokenSumNorm" } as const;
  const { advantages, policy } = await updated(drGrpo);
  close(advantages, [-1, 1, -0.5, 0.5]);
  assert.deepEqual([policy[0]!.step.aggregation, policy[0]!.step.maxResponseTokens], ["SeqMeanTokenSumNorm", 8]);
});

test("RLOO takes distances from the others' mean and has the whole response's KL in the reward", async () => {
  const batch = BATCH.map((sample, i) => (i === 0 ? { ...sample, response: Int32Array.of(0) } : sample));
  const { advantages, policy } = await updated({ baseline: "RLOO" }, batch);
  // returns: reward - 0.5 x 0.25 x tokens
  close(advantages, [1 - 0.125 - (3 - 0.25), 3 - 0.25 - (1 - 0.125), -1, 1]);
  assert.equal(policy[0]!.step.klCoefficient, 0);
  assert.equal(policy[0]!.samples[0]!.referenceLogProbs, undefined);
});

test("duration weights change the policy loss alone, in the same way for every baseline", async () => {
  for (const baseline of ["Critic", "BatchMean", "GRPO", "RLOO"] as const) {
    const { policy, advantages } = await updated({ baseline });
    assert.deepEqual(
      policy[0]!.samples.map(({ weight }) => weight),
      [0.5, 1.5, 1, 1],
      baseline,
    );
    const off = await updated({ baseline, durationWeighting: "Off" });
    assert.deepEqual(off.advantages, advantages);
    assert.deepEqual(new Set(off.policy[0]!.samples.map(({ weight }) => weight)), new Set([1]));
  }
});

test("whitening is on for Critic and BatchMean, and on request for groups", async () => {
  const squares = (advantages: number[][] | undefined) => advantages!.flat().reduce((sum, a) => sum + a * a, 0) / 7;
  assert.ok(Math.abs(squares((await updated({ baseline: "BatchMean" })).advantages) - 1) < 1e-5);
  close(
    (await updated({ baseline: "BatchMean", whitening: "Off", klCoefficient: 0 })).advantages,
    [4.75, 6.75, -6.25, -5.25],
  );
  assert.ok(Math.abs(squares((await updated({ baseline: "RLOO", whitening: "Plain" })).advantages) - 1) < 1e-5);
});

test("valid scores are compared within the group if the baseline is the group's", async () => {
  const batch = BATCH.map((sample, i) => ({ ...sample, goodness: [5, 7, undefined, 9][i] }));
  const z = Math.SQRT1_2;
  const { advantages } = await updated({ baseline: "GRPO", validScoreWeight: 2 }, batch);
  close(advantages, [-z - 2 * z, z + 2 * z, -z, z]);
});

test("decoupled PPO compares with the proximal policy and weighs by capped importance", async () => {
  const batch = BATCH.map((sample, i) => {
    const behaviourLogProbs = i === 1 ? Float32Array.of(-1.5, -3) : sample.behaviourLogProbs;
    return { ...sample, behaviourLogProbs, onPolicy: i !== 1 };
  });
  const { policy, result } = await updated({}, batch);
  const [fresh, stale] = policy[0]!.samples;
  assert.deepEqual([...fresh!.importance], [1, 1]);
  assert.deepEqual([...stale!.importance], [Math.fround(Math.exp(0.5)), 2]);
  assert.deepEqual([...stale!.proximalLogProbs], [-1, -1], "not the behaviour's");
  assert.equal(result.importanceMaxDeviation, 0, "of the current policy alone");
  assert.equal(result.importanceCappedShare, 1 / 8);
  assert.ok(Math.abs(result.importanceMean! - (7 + Math.exp(0.5) + 1) / 8) < 1e-6);
  const deviating = BATCH.map((sample) => ({ ...sample, behaviourLogProbs: Float32Array.of(-1, -1.1) }));
  assert.ok(Math.abs((await updated({}, deviating)).result.importanceMaxDeviation! - Math.expm1(0.1)) < 1e-6);
});

test("a batch of equal rewards leaves the policy as it is and trains the critic", async () => {
  const alike = BATCH.map((sample) => ({ ...sample, reward: -10, goodness: undefined }));
  for (const baseline of ["Critic", "BatchMean", "GRPO", "RLOO"] as const) {
    const { policy, critic, result, calls } = await updated({ baseline }, alike);
    if (baseline !== "Critic") {
      assert.deepEqual(calls, [], "nobody uses its log-probs");
      const { kl, entropy, importanceMean, importanceCappedShare, importanceMaxDeviation } = result;
      assert.deepEqual(
        [kl, entropy, importanceMean, importanceCappedShare, importanceMaxDeviation],
        Array(5).fill(null),
      );
    } else assert.ok(Number.isFinite(result.kl));
    assert.deepEqual([policy.length, critic.length], [0, Number(baseline === "Critic")], baseline);
    assert.deepEqual([result.noSignal, result.learningRate, result.policySteps], [true, null, []]);
    assert.ok(result.weights.every((weight) => weight > 0));
    assert.equal(result.zeroSpreadShare, baseline === "GRPO" || baseline === "RLOO" ? 1 : null);
  }
  const other = alike.map((sample, i) => ({ ...sample, reward: i === 1 ? -9.9 : -10 }));
  assert.deepEqual((await updated({ baseline: "BatchMean" }, other)).result.noSignal, false);
  const weightless = other.map((sample, i) => (i === 1 ? { ...sample, durationSeconds: 0 } : sample));
  const { noSignal } = (await updated({ baseline: "BatchMean" }, weightless)).result;
  assert.equal(noSignal, true, "the one that differs has weight 0");
  const scored = alike.map((sample, i) => ({ ...sample, reward: 10, goodness: i }));
  assert.equal((await updated({ baseline: "BatchMean", validScoreWeight: 0 }, scored)).result.noSignal, true);
  assert.equal((await updated({ baseline: "BatchMean", validScoreWeight: 0.5 }, scored)).result.noSignal, false);
  const acrossGroups = BATCH.map((sample) => ({ ...sample, reward: sample.group === BATCH[0]!.group ? 1 : 2 }));
  assert.equal((await updated({ baseline: "GRPO" }, acrossGroups)).result.noSignal, true, "groups are not compared");
});

/** Tasks of the samples with their rewards, in turn; the KL penalty is off. */
const ofTasks = (...samples: [task: string, reward: number, goodness?: number][]) =>
  samples.map(([task, reward, goodness], i): TrainingSample => {
    return { ...BATCH[0]!, task, reward, goodness, group: `${i}`, response: Int32Array.of(i, i) };
  });
const BY_TASK = { baseline: "BatchMean", klCoefficient: 0, normalizeBy: "Task" } as const;

test("normalizeBy compares a sample with its task or with the batch", async () => {
  const batch = ofTasks(["a", 1], ["b", 1000], ["a", 3], ["b", 3000]);
  const deviation = Math.sqrt(4 / 3); // of -1, -1, 1, 1 with Bessel's correction
  const one = 1 / deviation;
  close((await updated(BY_TASK, batch)).advantages, [-one, -one, one, one]);
  const together = await updated({ ...BY_TASK, normalizeBy: "Batch" }, batch);
  const [a1, , a3] = together.advantages!.map(([value]) => value!);
  assert.ok(Math.abs(a1! - a3!) < 0.01 && a1! < -0.5, `${a1} ${a3}: the difference of task a's samples is lost`);
});

test("the only sample of its task is compared with the batch, and trains", async () => {
  const { advantages } = await updated(BY_TASK, ofTasks(["a", 1], ["a", 3], ["b", 8]));
  // Before whitening -1, 1 and 8 - 4; the lone one gets the mean 4/3 and deviation of all six tokens.
  const raw = [-1, 1, 4].flatMap((value) => [value, value]);
  const deviation = Math.sqrt(raw.reduce((sum, value) => sum + (value - 4 / 3) ** 2, 0) / 5);
  const one = 1 / Math.sqrt(4 / 3);
  close(advantages, [-one, one, (4 - 4 / 3) / deviation]);
});

test("a task of equal rewards has no advantages beside a task of different rewards", async () => {
  const { advantages, result } = await updated(
    { ...BY_TASK, klCoefficient: 0.5 },
    ofTasks(["a", 1], ["a", 3], ["b", -10], ["b", -10]).map((sample, i) =>
      i === 3 ? { ...sample, response: Int32Array.of(3, 3, 3) } : sample,
    ),
  );
  close(advantages!.slice(2), [0, 0]);
  assert.equal(result.noSignal, false);
  assert.equal((await updated(BY_TASK, ofTasks(["a", 1], ["a", 1], ["b", -10], ["b", -10]))).result.noSignal, true);
});

test("valid scores of several tasks are compared task by task", async () => {
  const scored = ofTasks(["a", 10, 0.5], ["b", 10, 100], ["a", 10, 0.7], ["b", 10, 300]);
  const z = 0.5 * Math.SQRT1_2;
  close((await updated({ ...BY_TASK, validScoreWeight: 0.5 }, scored)).advantages, [-z, -z, z, z]);
});

test("truncated Mask keeps truncated samples out of both losses and their rewards in every comparison", async () => {
  const batch = BATCH.map((sample, i) => ({ ...sample, truncated: i === 1 || (i === 3 ? undefined : false) }));
  for (const baseline of ["Critic", "BatchMean", "GRPO", "RLOO"] as const) {
    const trained = await updated({ baseline, miniBatchSize: 2 }, batch);
    const masked = await updated({ baseline, miniBatchSize: 2, truncated: "Mask" }, batch);
    const samples = (steps: { samples: (PolicySample | ValueSample)[] }[]) =>
      steps.flatMap((step) => step.samples).sort((a, b) => a.response[0]! - b.response[0]!);
    for (const losses of ["policy", "critic"] as const) {
      if (losses === "critic" && baseline !== "Critic") continue;
      assert.deepEqual(
        samples(masked[losses]),
        samples(trained[losses]).filter(({ response }) => response[0] !== 1),
        `${baseline}, ${losses}: the others are as if nothing was masked`,
      );
      assert.deepEqual(
        masked[losses].map((step) => step.samples.length),
        [2, 1],
        "divided by the samples that are in the loss",
      );
    }
    for (const key of ["weights", "kl", "entropy", "importanceMean", "zeroSpreadShare", "noSignal"] as const)
      assert.deepEqual(masked.result[key], trained.result[key], key);
  }
});

test("a batch of truncated samples changes nothing with truncated Mask", async () => {
  const batch = BATCH.map((sample) => ({ ...sample, truncated: true }));
  const { policy, critic, result } = await updated({ truncated: "Mask" }, batch);
  assert.deepEqual([policy, critic, result.learningRate, result.criticLearningRate], [[], [], null, null]);
  assert.equal((await updated({ truncated: "Train" }, batch)).policy.length, 1);
});

test("overlongPenalty is taken from rewards before they are compared", async () => {
  const off = { baseline: "RLOO", klCoefficient: 0 } as const;
  close((await updated(off)).advantages, [-2, 2, -1, 1]);
  const overlongPenalty = { bufferTokens: 8, factor: 4 };
  // Every response has 2 tokens of 8: a quarter of the penalty. A truncated response pays all of it, in its group alone.
  const batch = BATCH.map((sample, i) => ({ ...sample, truncated: i === 1 }));
  close((await updated({ ...off, overlongPenalty }, batch)).advantages, [1, -1, -1, 1]);
  const { calls } = await updated({ overlongPenalty }, batch);
  assert.equal(calls[0], "initializeCritic -5.5");
});

const LIMITS = { warning: 0.05, error: 0.5 };
/** The second token of sample 1 was sampled with a log-prob that is `by` lower than the trainer's. */
const apart = (by: number, change: Partial<TrainingSample> = {}) =>
  BATCH.map((sample, i) =>
    i === 1 ? { ...sample, behaviourLogProbs: Float32Array.of(-1, -1 - by), ...change } : sample,
  );

test("on-policy log-probs that deviate give a warning, or an error before any step", async () => {
  const deviates = async (by: number, change?: Partial<TrainingSample>) =>
    (await updated({}, apart(by, change), { deviationLimits: LIMITS })).result.importanceDeviates;
  assert.equal(await deviates(1e-4), false);
  assert.equal(await deviates(0.1), true);
  assert.equal(await deviates(Number.NaN), false, "such steps are skipped");
  let steps = 0;
  const refuse = async () => void steps++;
  const engine = {
    ...{ initializeCritic: async () => {}, updatePolicy: refuse, updateCritic: refuse },
    evaluate: async () =>
      BATCH.map(() => ({
        logProbs: Float32Array.of(-1, -1),
        values: new Float32Array(2),
        entropies: new Float32Array(2),
      })),
  } as unknown as Engine;
  await assert.rejects(update(engine, apart(0.5), ALGORITHM, { ...CONTEXT, deviationLimits: LIMITS }), {
    name: "UpdateError",
    code: "deviation",
    message:
      /^importanceMaxDeviation is 0\.649, above 0\.5: the rollout engine samples from other weights, or at another temp.* report it with the bundle of `longrun debug`/,
  });
  assert.equal(steps, 0);
  assert.equal(
    await deviates(5, { onPolicy: false }),
    false,
    "samples of other weights may be as far off as they like",
  );
  assert.equal((await updated({}, apart(5))).result.importanceDeviates, false, "a replay");
});

test("each epoch trains on every sample once, in its own order", async () => {
  const batch = [0, 1, 2, 3, 4, 5, 6].map((i) => ({ ...BATCH[i % 4]!, response: Int32Array.of(i) }));
  const { critic, policy } = await updated({ ppoEpochs: 3, miniBatchSize: 3 }, batch);
  for (const steps of [critic, policy] as { samples: { response: Int32Array }[] }[][]) {
    assert.deepEqual(
      steps.map(({ samples }) => samples.length),
      [3, 3, 1, 3, 3, 1, 3, 3, 1],
    );
    const epochs = [0, 3, 6].map((first) =>
      steps.slice(first, first + 3).map(({ samples }) => samples.map(({ response }) => response[0]!).toSorted()),
    );
    for (const epoch of epochs) assert.deepEqual(epoch.flat().toSorted(), [0, 1, 2, 3, 4, 5, 6]);
    assert.equal(new Set(epochs.map((epoch) => JSON.stringify(epoch))).size, 3, "three divisions of the batch");
  }
});

test("the critic warms up before the policy is trained", async () => {
  const early = await updated({ criticWarmupIterations: 3 });
  assert.deepEqual([early.critic.length, early.policy.length], [1, 0]);
  const later = await updated({ criticWarmupIterations: 2 });
  assert.deepEqual([later.critic.length, later.policy.length], [1, 1]);
});

test("every step and the result have the iteration's learning rates", async () => {
  const learningRateSchedule = { type: "Linear", warmupIterations: 0, minimumRatio: 0 } as const;
  const { policy, critic, result } = await updated({ learningRateSchedule, miniBatchSize: 2 });
  assert.deepEqual(
    [...policy, ...critic].map(({ step }) => step.learningRate),
    [0.4, 0.4, 0.2, 0.2],
  );
  assert.deepEqual([result.learningRate, result.criticLearningRate], [0.4, 0.2]);
  const grpo = await updated({ baseline: "GRPO" });
  assert.deepEqual([grpo.result.learningRate, grpo.result.criticLearningRate], [0.5, null]);
});
