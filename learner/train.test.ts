import assert from "node:assert/strict";
import { test } from "node:test";
import type { PolicySample } from "./engine/engine.ts";
import type { UpdateResult } from "./rl/update.ts";
import type { Run } from "./run.ts";
import { newResult, newSample } from "./store/store.fixture.ts";
import type { Grade, Sample } from "./store/types.ts";
import { train } from "./train.ts";

/** Every valid sample has the same reward and a score of its own. */
const ALGORITHM = {
  ...{ batchSize: 4, miniBatchSize: 4, microBatchSize: 4, ppoEpochs: 1, oversampling: 1, collection: "CarryOver" },
  ...{ baseline: "BatchMean", validScoreWeight: 1, whitening: "Auto", importanceCap: 2, gamma: 1 },
  ...{ klPlacement: "Auto", klCoefficient: 0, stalenessPolicy: "Wait", maxStaleness: 9 },
  ...{ durationWeighting: "Off", durationClock: "Wall", startupSeconds: 0, criticWarmupIterations: 0 },
  learningRate: 1,
  learningRateSchedule: { type: "Constant", warmupIterations: 0, minimumRatio: 0 },
};

/**
 * Runs the fifth iteration, the last one, on a batch whose executions have all ended.
 *
 * @param versions the policy versions that wrote the samples
 */
async function trainOn(
  grades: Grade[],
  {
    direction = "Lower",
    replayed = false,
    versions = [4, 4, 4, 4],
    lineages = [3, 3, 3, 3],
    behaviour = -0.5,
    cut = -1,
    unrun = -1,
    algorithm = {},
    evaluation = {},
  } = {},
) {
  const numbers = (value: number) => Float32Array.of(value);
  const batch = grades.map((grade, i) => {
    const sample = newSample(`s${i}`, {
      iteration: versions[i]!,
      lineage: lineages[i]!,
      responseTokens: Int32Array.of(i),
      behaviourLogProbs: numbers(behaviour),
      truncated: i === cut,
    });
    return { ...sample, grade, result: i === unrun ? undefined : newResult() } as unknown as Sample;
  });
  const collected = { batch, staleIds: [], staleWaited: 0, surplusIds: [], brokenIds: [], abandonedSeconds: [] };
  const advantages: number[] = [];
  const [kept, failed]: unknown[][] = [[], []];
  const order: string[] = [];
  const lines: { iteration: number; meanReward: number; elapsedSeconds: number }[] = [];
  let updated: UpdateResult | undefined;
  const run = {
    engine: {
      evaluate: async () =>
        batch.map(() => ({ logProbs: numbers(-0.5), referenceLogProbs: numbers(-0.5), entropies: numbers(1) })),
      updatePolicy: async (samples: PolicySample[]) => {
        for (const sample of samples) advantages[sample.response[0]!] = sample.advantages[0]!;
        return {};
      },
    },
    store: {
      lineage: 3,
      // The third start has gone on from the fourth iteration of the first.
      originOf: ({ lineage, iteration }: Sample) => (lineage === 3 && iteration === 4 ? 1 : lineage),
      openGroups: () => batch.map(({ id, iteration }) => ({ id, iteration, unfinished: 0, finished: 1 })),
      groupSamples: (ids: string[]) => batch.filter(({ id }) => ids.includes(id)),
      leases: { attempts: { hasQueued: () => true } },
      addPreviousSolution: (solution: unknown) => kept.push(solution),
      addFailedSolutions: (ids: string[], iteration: number) => failed.push(...ids.map((id) => ({ id, iteration }))),
    },
    rollout: {
      generation: () => ({ underway: new Map(), begin: () => {}, end: async () => {}, takeLaunched: () => {} }),
    },
    spec: {
      ...{ algorithm: { ...ALGORITHM, ...algorithm }, evaluation, stopping: { iterations: 5 }, seed: 1 },
      ...{ actors: { sandboxResources: {} }, model: { temperature: 1, maxResponseTokens: 8 } },
    },
    deviationLimits: { warning: 0.01, error: 0.1 },
    progress: { lines, state: { iteration: 4 } },
    tasks: { named: () => ({ grader: { direction } }), all: [{ name: "diamonds" }] },
    files: {
      summary: {
        get evaluation() {
          order.push("evaluation");
          return { during: [{ iteration: 4, lineage: 1 }] };
        },
      },
    },
    recorded: replayed ? { batch: () => collected } : undefined,
    ...{ phases: { enter: () => {} }, grades: { gradeFinished: () => {} } },
    iterations: {
      begin: () => order.push("begin") && 5,
      countLaunched: () => {},
      finish: async (done: { updated: UpdateResult }) => {
        updated = done.updated;
        lines.push({ iteration: 5, meanReward: 0, elapsedSeconds: 1 });
      },
    },
  };
  const reason = await train(run as unknown as Run);
  return { reason, advantages, kept, failed, order, updated: updated! };
}

const valid = (score: number): Grade => ({ valid: true, score, reward: 1, reason: "valid" });
const INVALID: Grade = { valid: false, reward: 1, reason: "failed" };

for (const [direction, better, worse] of [
  ["Lower", 1, 0],
  ["Higher", 0, 1],
] as const)
  test(`the better of two scores with equal rewards has the larger advantage if ${direction.toLowerCase()} is better`, async () => {
    const { advantages, reason } = await trainOn([valid(30), valid(10), valid(20), INVALID], { direction });
    assert.ok(advantages[better]! > advantages[2]! && advantages[2]! > advantages[worse]!, `${advantages}`);
    assert.equal(reason, "all 5 iterations are done (stopping.iterations)");
  });

test("solutions of a batch become previous solutions, or failed ones if they ran; a replay adds none", async () => {
  const grades = [valid(30), INVALID, valid(20), INVALID];
  const { kept, failed } = await trainOn(grades, { unrun: 1 });
  assert.deepEqual(failed, [{ id: "s3", iteration: 5 }]);
  assert.deepEqual(kept, [
    { id: "s0", iteration: 5 },
    { id: "s2", iteration: 5 },
  ]);
  const replay = await trainOn(grades, { replayed: true });
  assert.deepEqual([replay.kept, replay.failed], [[], []]);
});

test("samples of the trained version are on policy; older ones, and ones from before a restart, are not", async () => {
  const grades = [valid(30), valid(10), valid(20), INVALID];
  const deviation = async (versions: number[]) => (await trainOn(grades, { versions })).updated.importanceMaxDeviation;
  assert.equal(typeof (await deviation([4, 3, 6, 2])), "number", "the first is on policy");
  assert.equal(await deviation([3, 3, 5, 2]), null, "no sample is on policy");
  const lineages = [2, 3, 2, 2];
  const left = async (options = {}) =>
    (await trainOn(grades, { lineages, versions: [4, 3, 4, 4], ...options })).updated;
  assert.equal((await left()).importanceMaxDeviation, null, "the second start had trained other weights");
  const earlier = { lineages: [1, 1, 2, 2] };
  const ahead = { lineages: [1, 1, 1, 1], versions: [6, 3, 5, 2] };
  assert.equal((await left(ahead)).importanceMaxDeviation, null, "the first start's later weights are lost");
  assert.equal(
    typeof (await left(earlier)).importanceMaxDeviation,
    "number",
    "the first start's are those of its checkpoint",
  );
  assert.equal(typeof (await left({ replayed: true })).importanceMaxDeviation, "number", "a replay has their lineage");
});

test("a run ends if other weights wrote its samples, but a replay goes on", async () => {
  const grades = [valid(30), valid(10), valid(20), INVALID];
  const isDeviation = { code: "deviation", message: /the rollout engine samples from other weights/ };
  await assert.rejects(trainOn(grades, { behaviour: -0.7 }), isDeviation);
  assert.equal((await trainOn(grades, { behaviour: -0.55 })).updated.importanceDeviates, true);
  assert.equal((await trainOn(grades, { behaviour: -0.500001 })).updated.importanceDeviates, false);
  assert.equal((await trainOn(grades, { behaviour: -0.7, replayed: true })).updated.importanceDeviates, false);
});

test("the update gets the truncated samples", async () => {
  const grades = [valid(30), valid(10), valid(20), INVALID];
  const { advantages } = await trainOn(grades, { cut: 1, algorithm: { truncated: "Mask" } });
  assert.deepEqual(
    [0, 1, 2, 3].filter((i) => i in advantages),
    [0, 2, 3],
  );
});

test("a due evaluation of the policy comes before the iteration begins", async () => {
  const order = async (everyIterations?: number) =>
    (await trainOn([valid(30), INVALID, valid(20), INVALID], { evaluation: { everyIterations } })).order;
  assert.deepEqual(await order(), ["begin"]);
  assert.deepEqual(await order(4), ["evaluation", "begin"]);
  assert.deepEqual(await order(5), ["begin"]);
});
