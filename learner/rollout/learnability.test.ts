import assert from "node:assert/strict";
import { test } from "node:test";
import type { Prompts } from "../../crds/trainingrun.ts";
import { drawingWeights } from "./learnability.ts";

const TASKS = [
  { task: { name: "a" }, weight: 1 },
  { task: { name: "b" }, weight: 2 },
  { task: { name: "c" }, weight: 1 },
];
const line = (a: number | null, b: number | null, c: number | null) => ({
  tasks: { a: { rewardDeviation: a }, b: { rewardDeviation: b }, c: { rewardDeviation: c } },
});
const weights = (lines: ReturnType<typeof line>[], change: Partial<Prompts> = {}) => {
  const prompts = { taskSampling: "Learnability", learnabilityIterations: 2, learnabilityFloor: 0.1, ...change };
  return drawingWeights(TASKS, lines, prompts as Prompts).map(({ weight }) => Number(weight.toFixed(6)));
};

test("Learnability draws tasks by the spread of their rewards lately, each at least by the floor", () => {
  assert.deepEqual(weights([line(4, 2, 0)]), [1, 2 * 0.55, 0.1]);
  assert.deepEqual(weights([line(4, 2, 0)], { learnabilityFloor: 1 }), [1, 2, 1]);
  assert.deepEqual(
    weights([line(100, 100, 100), line(4, 1, 0), line(4, 3, 0)]),
    [1, 2 * 0.55, 0.1],
    "the last two lines",
  );
  assert.deepEqual(
    weights([line(4, 2, 0), line(null, null, null)]),
    [1, 1.1, 0.1],
    "lines without samples do not count",
  );
  assert.deepEqual(weights([line(4, 2, null)]), [1, 1.1, 1], "a task that was not measured is drawn by its weight");
});

test("without a difference, or by default, tasks are drawn by their weights", () => {
  assert.deepEqual(weights([]), [1, 2, 1]);
  assert.deepEqual(weights([line(0, 0, 0)]), [1, 2, 1]);
  assert.deepEqual(weights([line(4, 2, 0)], { taskSampling: "Weight" }), [1, 2, 1]);
});
