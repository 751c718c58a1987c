import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cell, type Collection, expected, simulate, type World } from "./bandit.ts";

const SLOW = 1;
const WORLD: World = {
  name: "slow is better",
  actions: [
    { name: "fast", seconds: 1, reward: 0.3 },
    { name: "slow", seconds: 10, reward: 0.8 },
  ],
};
const cell = (kind: Collection["kind"], changed: Partial<Cell> = {}, oversampling = 1): Cell => ({
  ...{ world: WORLD, collection: { kind, oversampling }, weighting: "Off", advantage: "Raw" },
  ...changed,
});
const near = (actual: number, wanted: number, tolerance: number) =>
  assert.ok(Math.abs(actual - wanted) <= tolerance, `${actual} is not within ${tolerance} of ${wanted}`);

test("The drawn share of slow samples in the first batch equals its limit", () => {
  // Half of the launched executions are slow. Discard keeps the fast half of m B first, the rate-biased sampler keeps 1/10 : 1.
  const cases: [Cell, number][] = [
    [cell("WaitAll"), 1 / 2],
    [cell("CarryOver", {}, 1.5), 1 / 2],
    [cell("Discard", {}, 1.25), 1 - 1.25 / 2],
    [cell("Discard", {}, 1.5), 1 - 1.5 / 2],
    [cell("Discard", {}, 2), 0],
    [cell("RateBiased"), 0.1 / 1.1],
  ];
  for (const [each, share] of cases) {
    near(expected(each).firstShares[SLOW]!, share, 0.005);
    // CarryOver's first batch has nothing carried over, so it equals Discard's.
    if (each.collection.kind === "CarryOver") continue;
    const drawn = Array.from({ length: 20 }, (_, seed) => simulate(each, seed, 1).firstShares[SLOW]!);
    near(drawn.reduce((sum, value) => sum + value, 0) / drawn.length, share, 0.04);
  }
});

test("Equation 3 corrects the rate-biased sampler exactly, and no other sampler", () => {
  const unbiased = expected(cell("WaitAll")).policy;
  const repaired = expected(cell("RateBiased", { weighting: "Paper" })).policy;
  for (const [update, policy] of repaired.entries()) near(policy[SLOW]!, unbiased[update]![SLOW]!, 1e-9);
  assert.ok(expected(cell("RateBiased")).policy.at(-1)![SLOW]! < unbiased.at(-1)![SLOW]! - 0.05);
  assert.ok(expected(cell("WaitAll", { weighting: "Paper" })).policy.at(-1)![SLOW]! > unbiased.at(-1)![SLOW]! + 0.05);
});

test("The simulation equals the limit where batches do not lag; a seed gives the same numbers again", () => {
  for (const weighting of ["Off", "Paper", "Capped", "Completion"] as const) {
    for (const advantage of ["Raw", "Plain"] as const) {
      const each = cell("WaitAll", { weighting, advantage });
      const ends = Array.from({ length: 3 }, (_, seed) => simulate(each, seed).policy.at(-1)![SLOW]!);
      near(ends.reduce((sum, value) => sum + value, 0) / ends.length, expected(each).policy.at(-1)![SLOW]!, 0.03);
    }
  }
  assert.deepEqual(simulate(cell("CarryOver", {}, 1.5), 3), simulate(cell("CarryOver", {}, 1.5), 3));
});
