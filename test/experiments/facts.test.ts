import assert from "node:assert/strict";
import { test } from "node:test";
import type { TrainingRunSpec } from "../../crds/trainingrun.ts";
import { atSameEnd, type Row } from "./e4.ts";
import { type Program, policyFacts } from "./facts.ts";

const spec = (direction: "Higher" | "Lower") => {
  const [worst, best] = direction === "Higher" ? [0, 0.5] : [1000, 200];
  return { tasks: [{ grader: { direction, rewardRange: { worst, best } } }] } as TrainingRunSpec;
};
const program = (score: number | null, wall: number | null, cpu: number | null): Program => ({
  ...{ purpose: "training", kind: "scratch", version: 0, iteration: 1, state: "finished", finishedAt: 0 },
  ...{ wall, cpu, score, valid: score === null ? 0 : 1 },
});

test("A policy's programs give clipped scores, the best by direction, and the shorter of both clocks", () => {
  const programs = [program(600, 9, 4), program(100, 1, 3), program(null, 9, 9), program(null, null, null)];
  assert.deepEqual(policyFacts(programs, spec("Lower")), {
    ...{ programs: 4, valid: 0.5, score: 0.75, best: 100 },
    ...{ seconds: 2.5, typicalSeconds: 2, secondsOfAll: 14 / 3 },
  });
  assert.deepEqual(
    [policyFacts([program(0.1, 1, 1), program(0.4, 1, 1)], spec("Higher"))].map(({ score, best }) => [score, best]),
    [[0.5, 0.4]],
  );
  const none = policyFacts([program(null, 2, 1)], spec("Lower"));
  assert.deepEqual([none.valid, none.score, none.best, none.seconds, none.secondsOfAll], [0, null, null, null, 1]);
});

test("The best scores are compared at the latest time that every arm of a seed reached", () => {
  const row = (arm: string, seed: number, steps: [at: number, best: number | null][]): Row => ({
    ...{ world: "w", arm, seed, facts: { iterations: [], evaluation: null } },
    climb: { hidden: null, steps: steps.map(([at, best], index) => ({ at, executed: 10 * index, best })) },
  });
  const long = row("a", 0, [
    [1, null],
    [5, 0.4],
    [9, 0.9],
  ]);
  const short = row("b", 0, [
    [2, 0.1],
    [6, 0.5],
  ]);
  const other = row("a", 1, [
    [1, 0.2],
    [99, 0.8],
  ]);
  const rows = [long, short, other];
  const byTime = atSameEnd(rows, (step) => step.at);
  assert.deepEqual(rows.map(byTime), [0.4, 0.5, 0.8]);
  const byCount = atSameEnd(rows, (step) => step.executed);
  assert.deepEqual(rows.map(byCount), [0.4, 0.5, 0.8]);
  assert.equal(atSameEnd([short], (step) => step.at - 5)(short), 0.5);
});
