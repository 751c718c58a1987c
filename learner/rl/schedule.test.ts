import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import type { Algorithm } from "../../crds/trainingrun.ts";
import { learningRates, scheduleFactor } from "./schedule.ts";

type Schedule = Algorithm["learningRateSchedule"];

const close = (actual: number[], expected: number[], tolerance = 1e-12) => {
  assert.equal(actual.length, expected.length);
  for (const [i, value] of expected.entries())
    assert.ok(Math.abs(actual[i]! - value) <= tolerance, `${actual} is not ${expected}`);
};
const factors = (n: number, schedule: Schedule, count = n) =>
  Array.from({ length: count }, (_, i) => scheduleFactor(i + 1, n, schedule));

const cases: [name: string, n: number, schedule: Schedule, expected: number[]][] = [
  ["Constant", 3, { type: "Constant", warmupIterations: 0, minimumRatio: 0 }, [1, 1, 1]],
  ["Constant with warm-up", 4, { type: "Constant", warmupIterations: 3, minimumRatio: 0 }, [1 / 4, 2 / 4, 3 / 4, 1]],
  ["Linear", 4, { type: "Linear", warmupIterations: 0, minimumRatio: 0 }, [1, 0.75, 0.5, 0.25]],
  ["Linear to a minimum", 2, { type: "Linear", warmupIterations: 0, minimumRatio: 0.2 }, [1, 0.6]],
  ["Linear after warm-up", 5, { type: "Linear", warmupIterations: 1, minimumRatio: 0 }, [0.5, 1, 0.75, 0.5, 0.25]],
  [
    "Cosine",
    4,
    { type: "Cosine", warmupIterations: 0, minimumRatio: 0.1 },
    [1, 0.1 + 0.45 * (1 + Math.SQRT1_2), 0.55, 0.1 + 0.45 * (1 - Math.SQRT1_2)],
  ],
];
for (const [name, n, schedule, expected] of cases)
  test(`the learning rate follows the schedule ${name}`, () => close(factors(n, schedule), expected));

test("the decay stays at the minimum past its end", () => {
  close(factors(2, { type: "Linear", warmupIterations: 0, minimumRatio: 0.3 }, 4).slice(2), [0.3, 0.3]);
  close(factors(2, { type: "Cosine", warmupIterations: 0, minimumRatio: 0 }, 4).slice(2), [0, 0]);
});

// Made by test/fixtures/reference/make_advantage_reference.py
const file = path.join(import.meta.dirname, "../../test/fixtures/ppo/advantages.json");
const { schedules } = JSON.parse(fs.readFileSync(file, "utf8")) as {
  schedules: { type: "Linear" | "Cosine"; minimumRatio: number; warmup: number; steps: number; factors: number[] }[];
};
for (const { type, minimumRatio, warmup, steps, factors: theirs } of schedules) {
  test(`${type} with warm-up ${warmup} and minimum ${minimumRatio} has transformers' factors, one step ahead`, () => {
    const decayed = factors(steps, { type, warmupIterations: warmup, minimumRatio });
    close(decayed.slice(warmup), theirs.slice(warmup));
    // Their warm-up rises from 0 at step 0 to 1 at step w, which is w + 1 points; ours omits the 0.
    close(
      factors(steps, { type, warmupIterations: Math.max(warmup - 1, 0), minimumRatio }).slice(0, warmup),
      theirs.slice(1, warmup + 1),
    );
  });
}

test("policy and critic have rates of their own, and the policy's schedule begins after the critic's warm-up", () => {
  const o = {
    learningRate: 1,
    criticLearningRate: 10,
    criticWarmupIterations: 2,
    learningRateSchedule: { type: "Linear", warmupIterations: 1, minimumRatio: 0 } as Schedule,
  };
  const rates = [1, 2, 3, 4, 5, 6].map((iteration) => learningRates(iteration, 6, o));
  close(rates.map(({ policy }) => policy).slice(2), [0.5, 1, 2 / 3, 1 / 3]);
  close(
    rates.map(({ critic }) => critic),
    [5, 10, 8, 6, 4, 2],
  );
  const longer = { ...o, learningRateSchedule: { ...o.learningRateSchedule, decayIterations: 11 } };
  close([learningRates(6, 6, longer).critic], [10 * (1 - 4 / 10)]);
});
