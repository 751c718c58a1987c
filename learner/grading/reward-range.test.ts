import assert from "node:assert/strict";
import { test } from "node:test";
import type { Grader } from "../../crds/trainingrun.ts";
import { readAnswers } from "./grade.ts";
import { metrics } from "./metrics.ts";
import { rewardOf } from "./reward.ts";
import { estimateRewardRange } from "./reward-range.ts";

const graderOf = (metric: Grader["metric"], change: Partial<Grader> = {}): Grader => ({
  ...{ metric, idColumn: "id", targetColumns: ["y"], rewardFloor: -9 },
  direction: metrics[metric].direction,
  ...change,
});
const csv = (columns: Record<string, (number | string)[]>): Buffer => {
  const names = Object.keys(columns);
  const rows = columns[names[0]!]!.map((_, row) => [row, ...names.map((name) => columns[name]![row])].join());
  return Buffer.from(`id,${names.join()}\n${rows.join("\n")}\n`);
};
const estimate = (grader: Grader, columns: Record<string, (number | string)[]>, sample?: Buffer, half = false) =>
  estimateRewardRange(
    readAnswers(csv(columns), grader, { sample, ...(half && { split: "EveryOther" as const }) }),
    sample,
  );

/** `worst` was computed by hand: the least loss, or the highest score, of one constant. */
const cases: [Grader, Record<string, (number | string)[]>, worst: number, best: number][] = [
  [graderOf("RMSE"), { y: [0, 10] }, 5, 0],
  [graderOf("MAE"), { y: [0, 0, 30] }, 10, 0],
  [graderOf("RMSLE"), { y: [0, Math.E ** 2 - 1] }, 1, 0],
  [graderOf("R2"), { y: [1, 2, 6] }, 0, 1],
  [graderOf("Accuracy"), { y: ["a", "b", "b", "c"] }, 0.5, 1],
  [graderOf("BalancedAccuracy"), { y: ["a", "b", "b", "c"] }, 1 / 3, 1],
  [graderOf("F1"), { y: [1, 0, 0, 0] }, 0.4, 1],
  [graderOf("QuadraticWeightedKappa"), { y: [1, 2, 3] }, 0, 1],
  [graderOf("RocAuc"), { y: [1, 0, 0, 1] }, 0.5, 1],
  [graderOf("LogLoss", { targetColumns: ["a", "b"] }), { a: [1, 0], b: [0, 1] }, Math.log(2), 0],
  [graderOf("WordJaccard"), { y: ["good day", "good", "good"] }, (0.5 + 2) / 3, 1],
  [graderOf("RMSE", { targetColumns: ["y", "z"] }), { y: [0, 10], z: [0, 30] }, 10, 0],
  [graderOf("RMSE", { bounds: { least: 2 } }), { y: [0, 10] }, 5, Math.sqrt(2)],
];
for (const [grader, columns, worst, best] of cases)
  test(`the worst ${grader.metric} of one constant is found for ${JSON.stringify(columns)}`, () => {
    const { range, from } = estimate(grader, columns)!;
    assert.ok(Math.abs(range.worst - worst) < 1e-9, `worst ${range.worst}, not ${worst}`);
    assert.ok(Math.abs(range.best - best) < 1e-9, `best ${range.best}, not ${best}`);
    assert.match(from, /worst: score of the best constant prediction; best: score of the answers themselves/);
  });

test("the worst score is the sample submission's, else 0, for a metric without a score of constants", () => {
  const columns = { y: [1, 2, 3, 4] };
  const sample = csv({ y: [1, 3, 2, 4] });
  const estimated = estimate(graderOf("Pearson"), columns, sample)!;
  assert.ok(Math.abs(estimated.range.worst - 0.8) < 1e-9);
  assert.match(estimated.from, /worst: score of the sample submission;/);
  const constant = estimate(graderOf("Pearson"), columns, csv({ y: [0, 0, 0, 0] }))!;
  assert.equal(constant.range.worst, 0);
  assert.match(constant.from, /worst: no correlation;/);
});

test("there is no range if one constant predicts every answer", () => {
  assert.equal(estimate(graderOf("RMSE"), { y: [3, 3, 3] }), undefined);
});

test("rows that are only reported do not change the range", () => {
  assert.equal(estimate(graderOf("RMSE"), { y: [0, 900, 10, 500] }, undefined, true)!.range.worst, 5);
});

test("an RMSE around 30 earns a reward between 0 and 1, and not the floor", () => {
  const grader = graderOf("RMSE");
  const { range } = estimate(grader, { y: [0, 100, 200, 300] })!;
  const reward = (rules: Grader) =>
    rewardOf(
      {
        ...{ outcome: "completed", exitStatus: 0, insertedMarkers: [], seenMarkers: [], forgedMarkers: 0 },
        graded: { valid: true, score: 30, reason: { code: "valid", message: "valid" }, guards: [] },
      },
      { failureReward: -10, markerReward: 0.1 },
      rules,
    )!;
  assert.deepEqual([reward(grader).reward, reward(grader).clamped], [-9, true]);
  const ranged = reward({ ...grader, rewardRange: range });
  assert.equal(ranged.clamped, false);
  assert.ok(ranged.reward > 0.7 && ranged.reward < 1, String(ranged.reward));
});
