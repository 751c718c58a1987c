import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Grader } from "../../crds/trainingrun.ts";
import { MARKERS } from "../../proto/markers.ts";
import { readRegistry } from "../tasks/registry.ts";
import { graderOf } from "../tasks/task.ts";
import { guardNames } from "./guards.ts";
import { mleBenchTasks } from "./mlebench-tasks.ts";
import { type Reward, type RewardFacts, type RewardRules, rewardOf, rewardOrderFault } from "./reward.ts";
import { scoreReward } from "./reward-kinds.ts";

/** Table 3 and section 4.1 of the paper. */
const constants = { failureReward: -10, markerReward: 0.1 };
const ranged: Grader = {
  ...{ metric: "MAE", idColumn: "id", targetColumns: ["y"], direction: "Lower", rewardFloor: -9 },
  rewardRange: { worst: 1100, best: 250 },
};
const lower: Grader = { metric: "RMSE", idColumn: "id", targetColumns: ["y"], direction: "Lower", rewardFloor: -9 };
const higher: Grader = { metric: "R2", idColumn: "id", targetColumns: ["y"], direction: "Higher", rewardFloor: -9 };

const graded = (score: number) => ({
  valid: true,
  score,
  reason: { code: "valid" as const, message: "valid" },
  guards: [],
});
const completed: RewardFacts = {
  outcome: "completed",
  exitStatus: 0,
  insertedMarkers: MARKERS,
  seenMarkers: MARKERS,
  forgedMarkers: 0,
  graded: graded(250),
};
const refused = {
  valid: false,
  reason: { code: "missingColumn" as const, message: "missing column id" },
  guards: [],
};
const noMarkers = { insertedMarkers: [], seenMarkers: [], forgedMarkers: 0 };
const four = MARKERS.slice(0, 4);

type Expected = Partial<Reward> | undefined;
const invalid = (reward: number, reason: string): Expected => ({ reward, reason, valid: false });
const table: [string, RewardFacts, RewardRules, Expected][] = [
  // Solutions that are never executed.
  ["no plan", { ...noMarkers, fault: "noPlan" }, ranged, invalid(-10, "noPlan")],
  ["no code block", { ...noMarkers, fault: "noCodeBlock" }, ranged, invalid(-10, "noCodeBlock")],
  [
    "truncated: the block is not closed",
    { ...noMarkers, fault: "unclosedCodeBlock" },
    ranged,
    invalid(-10, "unclosedCodeBlock"),
  ],
  ["several blocks with code", { ...noMarkers, fault: "severalCodeBlocks" }, ranged, invalid(-10, "severalCodeBlocks")],
  // Programs without a valid submission.
  [
    "imports fail",
    { ...completed, outcome: "failed", exitStatus: 1, seenMarkers: [], graded: undefined },
    ranged,
    invalid(-10, "failed"),
  ],
  [
    "imports work, data does not",
    { ...completed, outcome: "failed", exitStatus: 1, seenMarkers: [MARKERS[0]] },
    ranged,
    invalid(-9.9, "failed"),
  ],
  [
    "completed without submission",
    { ...completed, graded: undefined, seenMarkers: four },
    ranged,
    invalid(-9.6, "noSubmission"),
  ],
  [
    "completed, submission refused by the grader",
    { ...completed, graded: refused },
    ranged,
    invalid(-9.3, "missing column id"),
  ],
  [
    "failed, submission left behind",
    { ...completed, outcome: "failed", exitStatus: 1 },
    ranged,
    invalid(-9.3, "failed"),
  ],
  ["completed but for its exit status", { ...completed, exitStatus: 3 }, ranged, invalid(-9.3, "failed")],
  ["no exit status known", { ...completed, exitStatus: undefined }, ranged, invalid(-9.3, "failed")],
  [
    "timed out, submission left behind",
    { ...completed, outcome: "timedOut", seenMarkers: four },
    ranged,
    invalid(-9.6, "timedOut"),
  ],
  ["out of memory", { ...completed, outcome: "outOfMemory", seenMarkers: four }, ranged, invalid(-9.6, "outOfMemory")],
  [
    "printed too much",
    { ...completed, outcome: "outputLimit", seenMarkers: four },
    ranged,
    invalid(-9.6, "outputLimit"),
  ],
  [
    "NaN score",
    { ...completed, graded: graded(Number.NaN) },
    ranged,
    invalid(-9.3, "the score is not a finite number"),
  ],
  [
    "infinite score",
    { ...completed, graded: graded(Infinity) },
    ranged,
    invalid(-9.3, "the score is not a finite number"),
  ],
  ["lost", { ...completed, outcome: "lost" }, ranged, undefined],
  // Markers.
  [
    "a marker printed twice counts once",
    { ...completed, graded: undefined, seenMarkers: [MARKERS[0], MARKERS[0]] },
    ranged,
    invalid(-9.9, "noSubmission"),
  ],
  [
    "only inserted markers count",
    { ...completed, graded: undefined, insertedMarkers: [MARKERS[1]] },
    ranged,
    { reward: -9.9, creditedMarkers: [MARKERS[1]] },
  ],
  [
    "none inserted",
    { ...completed, graded: undefined, insertedMarkers: [] },
    ranged,
    { reward: -10, creditedMarkers: [] },
  ],
  [
    "the order of markers does not matter",
    { ...completed, graded: undefined, seenMarkers: MARKERS.toReversed() },
    ranged,
    { reward: -9.3 },
  ],
  [
    "one forgery zeroes the credit",
    { ...completed, graded: undefined, forgedMarkers: 1 },
    ranged,
    { reward: -10, creditedMarkers: [] },
  ],
  ["a forgery does not touch a valid score", { ...completed, forgedMarkers: 3 }, ranged, { reward: 1, valid: true }],
  // Valid submissions: the score alone.
  [
    "best end of the range",
    completed,
    ranged,
    { reward: 1, valid: true, score: 250, reason: "valid", clamped: false, creditedMarkers: [] },
  ],
  ["worst end of the range", { ...completed, graded: graded(1100) }, ranged, { reward: 0, valid: true }],
  ["between", { ...completed, graded: graded(675) }, ranged, { reward: 0.5 }],
  ["better than the best end", { ...completed, graded: graded(0) }, ranged, { reward: 1100 / 850, clamped: false }],
  ["below the range, above the floor", { ...completed, graded: graded(8750) }, ranged, { reward: -9, clamped: false }],
  [
    "below the floor",
    { ...completed, graded: graded(1e9) },
    ranged,
    { reward: -9, score: 1e9, valid: true, clamped: true },
  ],
  ["no range, higher is better", { ...completed, graded: graded(0.48) }, higher, { reward: 0.48 }],
  [
    "no range, lower is better: the sign is flipped",
    { ...completed, graded: graded(0.25) },
    lower,
    { reward: -0.25, score: 0.25 },
  ],
  [
    "no range, an RMSE of 50 is not worse than a crash",
    { ...completed, graded: graded(50) },
    lower,
    { reward: -9, score: 50, clamped: true },
  ],
  [
    "guards are passed on",
    { ...completed, graded: { ...graded(250), guards: ["constant"] } },
    ranged,
    { guards: ["constant"] },
  ],
  [
    "a guard without a cap flags and no more",
    { ...completed, graded: { ...graded(250), guards: ["perfect"] } },
    ranged,
    { reward: 1, capped: false, guards: ["perfect"] },
  ],
  [
    "a flagged submission earns at most the cap",
    { ...completed, graded: { ...graded(250), guards: ["sampleSubmission"] } },
    { ...ranged, guardedRewardCap: 0.25 },
    { reward: 0.25, valid: true, score: 250, capped: true, clamped: false },
  ],
  [
    "the cap takes nothing from less",
    { ...completed, graded: { ...graded(1100), guards: ["constant"] } },
    { ...ranged, guardedRewardCap: 0.25 },
    { reward: 0, capped: false },
  ],
  ["nor from what no guard flags", completed, { ...ranged, guardedRewardCap: 0.25 }, { reward: 1, capped: false }],
  [
    "a cap below the floor is the floor",
    { ...completed, graded: { ...graded(250), guards: ["perfect"] } },
    { ...ranged, guardedRewardCap: -20 },
    { reward: -9, capped: true },
  ],
];

test("the reward has the paper's value in every case", async (t) => {
  for (const [name, facts, grader, expected] of table)
    await t.test(name, () => {
      const actual = rewardOf(facts, constants, grader);
      if (expected === undefined) return assert.equal(actual, undefined);
      assert.ok(actual);
      const { reward, ...rest } = expected;
      if (reward !== undefined) assert.ok(Math.abs(actual.reward - reward) < 1e-12, `${actual.reward}, not ${reward}`);
      assert.deepEqual(Object.fromEntries(Object.keys(rest).map((key) => [key, actual[key as keyof Reward]])), rest);
      if (!actual.valid) assert.equal(actual.score, undefined);
    });
});

const failureRewards = {
  ...{ noCodeBlock: -20, unclosedCodeBlock: -19, syntaxError: -18, importError: -17 },
  ...{ failed: -16, noSubmission: -15, invalidSubmission: -14 },
};
const failed = (detail: string, seenMarkers = MARKERS.slice(0, 0)): RewardFacts => {
  return { ...completed, outcome: "failed", exitStatus: 1, detail, seenMarkers, graded: undefined };
};
const steps: [string, RewardFacts, number][] = [
  ["no code block", { ...noMarkers, fault: "noCodeBlock" }, -20],
  ["a code block without code", { ...noMarkers, fault: "emptyCodeBlock" }, -20],
  ["no plan", { ...noMarkers, fault: "noPlan" }, -19],
  ["unclosed", { ...noMarkers, fault: "unclosedCodeBlock" }, -19],
  ["several code blocks", { ...noMarkers, fault: "severalCodeBlocks" }, -19],
  ["an execution that never came", { ...noMarkers, fault: "notExecuted" }, -16],
  ["does not parse", failed("SyntaxError in line 3"), -18],
  ["does not parse, without a line", failed("SyntaxError"), -18],
  ["indentation", failed("IndentationError in line 1"), -18],
  ["a SyntaxError of a program that runs", failed("SyntaxError in line 9", four), -16 + 0.4],
  ["no such module", failed("ModuleNotFoundError in line 1"), -17],
  ["no such name in a module", failed("ImportError in line 1", MARKERS.slice(0, 1)), -17 + 0.1],
  ["an error whose name begins alike", failed("ImportErrorOfMine in line 1"), -16],
  ["another error", failed("ValueError in line 7", four), -16 + 0.4],
  ["an exit status", failed("exit status 3"), -16],
  ["timed out", { ...completed, outcome: "timedOut", seenMarkers: four }, -16 + 0.4],
  ["out of memory", { ...completed, outcome: "outOfMemory", seenMarkers: [] }, -16],
  ["no submission", { ...completed, graded: undefined, seenMarkers: four }, -15 + 0.4],
  ["a submission that is refused", { ...completed, graded: refused, seenMarkers: four }, -14 + 0.4],
  ["a score that is no number", { ...completed, graded: graded(Number.NaN), seenMarkers: [] }, -14],
  ["valid", completed, 1],
];

test("failureRewards go by the last step that an answer reached; a step without one earns failureReward", async (t) => {
  for (const [name, facts, expected] of steps)
    await t.test(name, () => {
      const reward = rewardOf(facts, constants, { ...ranged, failureRewards })!.reward;
      assert.ok(Math.abs(reward - expected) < 1e-12, `${reward}, not ${expected}`);
      const paper = rewardOf(facts, constants, ranged);
      assert.deepEqual(rewardOf(facts, constants, { ...ranged, failureRewards: {} }), paper);
    });
  assert.equal(
    rewardOf(failed("ValueError"), constants, { ...ranged, failureRewards: { importError: -11 } })!.reward,
    -10,
  );
});

test("no step may earn as much as a valid submission", () => {
  const fault = (failureRewards: object) => rewardOrderFault(constants, { ...ranged, failureRewards });
  assert.equal(fault(failureRewards), undefined);
  assert.match(fault({ noSubmission: -9.5 })!, /can earn -8.8.* \(failureRewards.noSubmission and 7 times/);
  assert.match(
    rewardOrderFault({ ...constants, failureReward: -1 }, { ...ranged, failureRewards: { failed: -20 } })!,
    /algorithm.failureReward/,
  );
  assert.equal(rewardOrderFault({ ...constants, failureReward: -1 }, { ...ranged, failureRewards }), undefined);
});

const markers = fc.subarray([...MARKERS, "made up"]);
const outcomes = fc.constantFrom(
  "completed",
  "failed",
  "timedOut",
  "outOfMemory",
  "outputLimit",
) as fc.Arbitrary<"completed">;
const anyFacts = fc.record({
  outcome: outcomes,
  exitStatus: fc.constantFrom(0, 1),
  insertedMarkers: markers,
  seenMarkers: markers,
  forgedMarkers: fc.nat(2),
  graded: fc.option(
    fc.tuple(fc.double(), fc.subarray([...guardNames])).map(([score, guards]) => ({ ...graded(score), guards })),
    { nil: undefined },
  ),
});

test("every valid reward is above every invalid one, for every task", () => {
  const graders = Object.values(readRegistry()).map(({ task }) => task.grader as Grader);
  const twelve = Object.values(mleBenchTasks()).map(graderOf);
  assert.equal(twelve.length, 12);
  for (const grader of [...graders, ...twelve, lower, higher, { ...higher, guardedRewardCap: -99 }]) {
    assert.equal(rewardOrderFault(constants, grader), undefined);
    fc.assert(
      fc.property(anyFacts, anyFacts, (a, b) => {
        const [first, second] = [rewardOf(a, constants, grader)!, rewardOf(b, constants, grader)!];
        assert.ok(Number.isFinite(first.reward));
        if (first.valid && !second.valid) assert.ok(first.reward > second.reward);
      }),
    );
  }
});

test("a score near the largest number earns a finite reward", () => {
  for (const score of [Number.MAX_VALUE, -Number.MAX_VALUE])
    assert.ok(Number.isFinite(scoreReward(score, { ...ranged, rewardRange: { worst: 0.5, best: 0 } })), String(score));
});

test("a better score never earns less", () => {
  const score = fc.double({ min: -1e6, max: 1e6, noNaN: true });
  fc.assert(
    fc.property(score, score, (a, b) => {
      const [low, high] = a < b ? [a, b] : [b, a];
      assert.ok(scoreReward(high, higher) >= scoreReward(low, higher));
      assert.ok(scoreReward(high, lower) <= scoreReward(low, lower));
      assert.ok(scoreReward(high, ranged) <= scoreReward(low, ranged));
    }),
  );
});

test("constants that would let markers beat a valid submission are refused", () => {
  assert.match(rewardOrderFault({ failureReward: -10, markerReward: 0.2 }, ranged)!, /rewardFloor is -9.*markerReward/);
  assert.match(rewardOrderFault({ failureReward: 0, markerReward: 0 }, ranged)!, /rewardFloor/);
  assert.equal(
    rewardOrderFault({ failureReward: -10, markerReward: 0.1 }, { ...ranged, rewardFloor: -9.2 }),
    undefined,
  );
  assert.ok(rewardOrderFault({ failureReward: -10, markerReward: -1 }, { ...ranged, rewardFloor: -10 }));
});

test("the bundled ranges map the scores of fast and slow programs to 0..1 and a constant below 0", () => {
  const reward = (task: string, score: number) => scoreReward(score, readRegistry()[task]!.task.grader as Grader);
  for (const [task, scores] of Object.entries({
    diamonds: [1010, 732, 423, 264.5],
    movie: [0.33, 0.484, 0.527],
    wage: [39.5, 36.09, 35.8],
  }))
    for (const score of scores) assert.ok(reward(task, score) > 0 && reward(task, score) < 1, `${task} ${score}`);
  assert.ok(reward("diamonds", 3043) < 0);
});

test("the worst valid score of each MLE-bench task earns more than any program without a valid submission", () => {
  // For log loss and RMSLE; the scores of other metrics are at least -1.
  const worst: Record<string, number> = { LogLoss: -Math.log(Number.EPSILON), RMSLE: Math.log(Number.MAX_VALUE) };
  for (const [id, task] of Object.entries(mleBenchTasks())) {
    const score = worst[task.metric] ?? -1;
    const reward = rewardOf({ ...completed, graded: graded(score) }, constants, graderOf(task))!;
    assert.ok(reward.reward > -9.3, id);
    assert.deepEqual([reward.clamped, reward.score], [task.direction === "Lower", score], id);
  }
});
