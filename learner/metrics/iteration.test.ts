import assert from "node:assert/strict";
import { test } from "node:test";
import { type IterationInput, iterationMetrics } from "./iteration.ts";
import type { MeasuredSample } from "./measured-sample.ts";

const tokens = { promptTokens: { length: 10 }, responseTokens: { length: 20 } };

const ENGINE = { generating: 0, updating: 3, idleActors: 0, idlePrograms: 0, idleStaleness: 0, idleOther: 0 };

function sample(fields: Partial<MeasuredSample>): MeasuredSample {
  return { task: "diamonds", kind: "scratch", valid: false, ...tokens, ...fields };
}

function measure(fields: Partial<IterationInput>) {
  return iterationMetrics({
    iteration: 3,
    lineage: 1,
    tasks: [{ name: "diamonds", direction: "Lower", worst: 3000, best: 1000 }],
    markerNames: ["imported packages", "loaded data"],
    trained: [],
    launchedSeconds: [],
    durationWeights: [],
    kl: 0.01,
    klCoefficient: 0.001,
    entropy: 0.5,
    importanceMaxDeviation: null,
    importanceDeviates: false,
    importanceMean: 1,
    learningRate: 3e-4,
    criticLearningRate: null,
    importanceCappedShare: 0,
    policySteps: [],
    criticSteps: [],
    tokensGenerated: 0,
    secondsByPhase: {},
    seconds: 10,
    elapsedSeconds: 30,
    actors: { busySeconds: 0, aliveSeconds: 0 },
    executions: { queued: 0, running: 0, lost: 0, retried: 0 },
    improvePrompts: { shown: 3, noPrevious: 0, tooLong: 2 },
    debugPrompts: { shown: 0, noFailure: 0, tooLong: 0 },
    verificationFailures: 0,
    instrumenterFaults: [],
    staleDropped: 0,
    staleWaited: 0,
    zeroSpreadShare: null,
    noSignal: false,
    groupDropped: 0,
    zeroSignalDropped: 0,
    wallTime: new Date("2026-01-02T03:04:05Z"),
    ...fields,
  });
}

const valid = (score: number, durationSeconds: number, more: Partial<MeasuredSample> = {}) =>
  sample({ outcome: "completed", valid: true, score, reward: -score / 1000, durationSeconds, family: "tree", ...more });
const failed = (durationSeconds: number) =>
  sample({
    outcome: "failed",
    reward: -9.9,
    durationSeconds,
    family: "ridge",
    markers: [{ name: "imported packages" }],
  });
const notExecuted = sample({ reward: -10, kind: "improve" });

const mixed = [valid(2000, 2, { verbatim: true, lag: 1 }), valid(1000, 4, { verbatim: false }), failed(0), notExecuted];

const cases: [name: string, input: Partial<IterationInput>, expected: Record<string, unknown>][] = [
  [
    "an empty batch",
    {},
    { samples: 0, validFraction: 0, meanScore: null, bestScore: null, meanReward: null, meanLag: 0 },
  ],
  [
    "truncated responses, as a share of the responses with a known end",
    {
      trained: [
        sample({ truncated: true }),
        sample({ truncated: false }),
        sample({ truncated: false }),
        sample({ truncated: false }),
        sample({}),
      ],
    },
    { truncatedFraction: 0.25 },
  ],
  ["of none it is known whether it was cut", { trained: mixed }, { truncatedFraction: null }],
  ["generation and training disagree", { importanceDeviates: true }, { importanceDeviates: true }],
  [
    "shares, means and counts",
    { trained: mixed },
    {
      samples: 4,
      executed: 3,
      validFraction: 0.5,
      meanScore: 1500,
      bestScore: 1000,
      bestScoreSoFar: 1000,
      meanNormalizedScore: 0.75,
      meanReward: (-2 - 1 - 9.9 - 10) / 4,
      meanDurationSeconds: 2,
      outcomes: { completed: 2, failed: 1, notExecuted: 1 },
      markers: { "imported packages": 1 / 3, "loaded data": 0 },
      families: { tree: 2 / 3, ridge: 1 / 3 },
      promptKinds: { scratch: 3, improve: 1 },
      verbatimValidShare: 0.5,
      meanLag: 0.25,
      maxLag: 1,
      tokensTrained: 120,
    },
  ],
  ["no valid program", { trained: [failed(1)] }, { meanScore: null, bestScoreSoFar: null, verbatimValidShare: null }],
  [
    "a lost execution has no reward and no duration",
    { trained: [sample({ outcome: "lost" }), valid(1000, 3)] },
    { outcomes: { lost: 1, completed: 1 }, meanReward: -1, meanDurationSeconds: 3 },
  ],
  [
    "higher is better",
    { tasks: [{ name: "diamonds", direction: "Higher" }], trained: [valid(1, 1), valid(3, 1)] },
    { bestScore: 3, meanNormalizedScore: null },
  ],
  [
    "the best so far stays when an iteration is worse",
    { trained: [valid(2000, 1)], previous: measure({ trained: [valid(1200, 1)] }) },
    { bestScore: 2000, bestScoreSoFar: 1200 },
  ],
  [
    "the best so far outlives an iteration without a valid program",
    { trained: [failed(1)], previous: measure({ trained: [valid(1200, 1)] }) },
    { bestScore: null, bestScoreSoFar: 1200 },
  ],
  [
    "several tasks have no common score",
    {
      tasks: [
        { name: "diamonds", direction: "Lower" },
        { name: "movie", direction: "Higher", worst: 0, best: 0.5 },
      ],
      trained: [valid(2000, 1), valid(0.25, 1, { task: "movie" })],
    },
    { meanScore: null, bestScore: null, meanNormalizedScore: 0.5 },
  ],
  ["equal weights lose no sample", { durationWeights: [1, 1, 1, 1] }, { effectiveSampleSize: 4, maxDurationWeight: 1 }],
  ["one weight decides alone", { durationWeights: [4, 0, 0, 0] }, { effectiveSampleSize: 1, maxDurationWeight: 4 }],
  [
    "the weighted mean duration follows the weights",
    { trained: [valid(1, 1), valid(1, 4), notExecuted], durationWeights: [0.5, 1.5, 1] },
    { weightedMeanDurationSeconds: (0.5 + 6) / 2, trainedMeanDurationSeconds: 2.5 },
  ],
  [
    "launched durations have every program that ended",
    { trained: [valid(1, 1)], launchedSeconds: [1, 3] },
    { launchedMeanDurationSeconds: 2, trainedMeanDurationSeconds: 1 },
  ],
  [
    "time that no phase had is other",
    { secondsByPhase: { generate: 2, execute: 5, train: 1.5 }, tokensGenerated: 100, trained: [valid(1, 1)] },
    {
      secondsByPhase: { generate: 2, execute: 5, train: 1.5, other: 1.5 },
      generationTokensPerSecond: 50,
      trainingTokensPerSecond: 20,
      learnerIdleShare: 0.5,
    },
  ],
  [
    "the engine's uses, to the millisecond",
    { engineSeconds: { ...ENGINE, generating: 2.50004, idleActors: 4.49996 } },
    { engineSeconds: { ...ENGINE, generating: 2.5, idleActors: 4.5 } },
  ],
  ["nothing measured what the engine did", {}, { engineSeconds: undefined }],
  [
    "why the static policy did not instrument",
    { instrumenterFaults: ["changed", "cutOff", "changed"] },
    { instrumenterFaults: { changed: 2, cutOff: 1 } },
  ],
  ["nothing was flagged", { trained: mixed }, { flagged: 0, guards: { sampleSubmission: 0, constant: 0, perfect: 0 } }],
  [
    "a flagged sample counts once, and once for each guard",
    {
      trained: [
        valid(1, 1, { guards: ["sampleSubmission", "constant"], capped: true }),
        valid(2, 1, { guards: ["constant"], capped: true, clamped: true }),
        valid(3, 1, { guards: [] }),
        failed(1),
      ],
    },
    {
      flagged: 2,
      guards: { sampleSubmission: 1, constant: 2, perfect: 0 },
      clampedRewards: 1,
      cappedRewards: 2,
    },
  ],
  [
    "a program counts once, and once for each kind of what it reached for",
    { trained: [valid(1, 1, { reaches: ["answers", "paths"] }), valid(2, 1, { reaches: ["paths"] }), valid(3, 1)] },
    { reaching: 2, reaches: { answers: 1, paths: 2, refused: 0 } },
  ],
  [
    "more than half of the valid rewards were raised to the floor",
    { trained: [valid(1, 1, { clamped: true }), valid(2, 1, { clamped: true }), valid(3, 1), failed(1)] },
    { clampedRewards: 2, mostlyClamped: true },
  ],
  [
    "half of the valid rewards were raised to the floor",
    { trained: [valid(1, 1, { clamped: true }), valid(2, 1)] },
    { clampedRewards: 1, mostlyClamped: false },
  ],
  ["no valid reward", { trained: [failed(1)] }, { clampedRewards: 0, mostlyClamped: false }],
  ["busy share of slot-seconds", { actors: { busySeconds: 9, aliveSeconds: 12 } }, { actorBusyShare: 0.75 }],
  ["no actor, no share", {}, { actorBusyShare: null, generationTokensPerSecond: null }],
];

for (const [name, input, expected] of cases) {
  test(`an iteration's line has its metrics: ${name}`, () => {
    const line = measure(input) as unknown as Record<string, unknown>;
    assert.deepEqual(Object.fromEntries(Object.keys(expected).map((key) => [key, line[key]])), expected);
  });
}

test("an iteration's metrics count skipped steps as skipped alone", () => {
  const step = {
    loss: 1,
    kl: 0.1,
    ratioMax: 2,
    ratioMean: 1,
    clipFraction: 0.5,
    entropy: 1,
    gradientNorm: 3,
    skipped: false,
  };
  const skipped = { ...step, kl: Number.NaN, ratioMax: Number.NaN, gradientNorm: Number.NaN, skipped: true };
  const critic = { loss: 2, explainedVariance: 0.5, gradientNorm: 1, skipped: true };
  const line = measure({ policySteps: [step, skipped, { ...step, ratioMax: 5 }], criticSteps: [critic] });
  assert.deepEqual(
    [line.policySteps, line.skippedSteps, line.updateKl, line.ratioMax, line.gradientNorm, line.valueLoss],
    [3, 2, 0.1, 5, 3, null],
  );
});

test("every duration of an iteration's launched programs is in one bin", () => {
  const { durationHistogram } = measure({ launchedSeconds: [0, 0.049, 0.05, 1, 1.99, 1e9], trained: [valid(1, 7)] });
  const at = (edge: number) => durationHistogram.launched[durationHistogram.edgesSeconds.indexOf(edge)];
  assert.deepEqual([at(0), at(0.05), at(1), at(50_000)], [2, 1, 2, 1]);
  assert.equal(durationHistogram.trained[durationHistogram.edgesSeconds.indexOf(5)], 1);
});

test("an iteration's line is the same after a trip through JSON", () => {
  for (const engineSeconds of [ENGINE, undefined]) {
    const line = measure({ trained: mixed, durationWeights: [1, 1, 1, 1], engineSeconds });
    assert.deepEqual(JSON.parse(JSON.stringify(line)), line);
  }
});

test("what became of failed programs is counted for debug prompts alone", () => {
  const debug = (valid: boolean, failureStep?: "syntaxError" | "failed" | "noSubmission") =>
    sample({ kind: "debug", previousStep: "failed", valid, failureStep, reward: 0 });
  const trained = [
    ...[debug(true), debug(false, "failed"), debug(false, "noSubmission"), debug(false, "syntaxError")],
    ...[sample({ kind: "scratch", reward: -10, failureStep: "syntaxError" }), sample({ kind: "improve", valid: true })],
  ];
  const { debugging, failureSteps } = measure({ trained });
  assert.deepEqual(debugging, { fixed: 1, notFixed: 2, broke: 1 });
  assert.deepEqual(failureSteps, {
    ...{ noCodeBlock: 0, unclosedCodeBlock: 0, syntaxError: 2, importError: 0 },
    ...{ failed: 1, noSubmission: 1, invalidSubmission: 0 },
  });
});

test("iterations without signal are counted in a row", () => {
  const after = (noSignal: boolean, noSignalIterations?: number) =>
    measure({ noSignal, previous: { tasks: {}, noSignalIterations } }).noSignalIterations;
  assert.deepEqual(
    [measure({ noSignal: true }).noSignalIterations, after(true), after(true, 3), after(false, 3)],
    [1, 1, 4, 0],
  );
});
