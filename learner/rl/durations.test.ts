import assert from "node:assert/strict";
import { test } from "node:test";
import type { Algorithm, TrainingRunSpec } from "../../crds/trainingrun.ts";
import {
  completionChance,
  type DurationOptions,
  durationClock,
  durationWeighting,
  durationWeights,
} from "./durations.ts";

const options: DurationOptions = {
  durationWeighting: "Paper",
  durationCap: 10,
  startupSeconds: 1,
  timeoutWeight: "Full",
  durationClock: "Wall" as const,
};
const ran = (durationSeconds: number, cpuSeconds = durationSeconds) => ({
  outcome: "completed" as const,
  durationSeconds,
  cpuSeconds,
});
const timedOut = { outcome: "timedOut" as const, durationSeconds: 7, cpuSeconds: 7 };

const cases: [string, Parameters<typeof durationWeights>[0], Partial<DurationOptions>, number[]][] = [
  ["Paper: dt over its mean", [ran(1), ran(3)], {}, [2 / 3, 4 / 3]],
  ["Off", [ran(1), ran(30)], { durationWeighting: "Off" }, [1, 1]],
  ["never executed: 1, and not in the mean", [{}, ran(99), ran(299)], {}, [1, 0.5, 1.5]],
  ["never executed, Capped: 1 before the scale", [{}, ran(0), ran(2)], { durationWeighting: "Capped" }, [1, 0.5, 1.5]],
  ["never executed, Completion: nothing was lost", [{}, ran(99)], { durationWeighting: "Completion" }, [1, 1]],
  ["nothing was executed", [{}, {}], {}, [1, 1]],
  ["sleeping does not pay", [ran(9, 1), ran(1)], { durationClock: "Active" }, [1, 1]],
  ["timeout Full", [timedOut, ran(1)], {}, [1.6, 0.4]],
  ["timeout One", [timedOut, ran(1), ran(3)], { timeoutWeight: "One" }, [1, 2 / 3, 4 / 3]],
  [
    "Capped, then back to mean 1",
    [ran(0), ran(0), ran(9)],
    { durationWeighting: "Capped", durationCap: 1 },
    [0.25 / 0.5, 0.25 / 0.5, 1 / 0.5],
  ],
  ["Completion under CarryOver is exactly 1", [ran(1), ran(30)], { durationWeighting: "Completion" }, [1, 1]],
];
for (const [name, batch, o, expected] of cases) {
  test(`duration weights follow the settings: ${name}`, () => {
    const weights = durationWeights(batch, { ...options, ...o });
    for (const [i, value] of expected.entries()) {
      assert.ok(Math.abs(weights[i] - value) < 1e-12, `${weights} is not ${expected}`);
    }
  });
}

test("durationClock Auto is Wall if the sandbox has a device, else Active", () => {
  const clock = (limits: Record<string, string | number>, durationClock: Algorithm["durationClock"] = "Auto") =>
    ({ algorithm: { durationClock }, actors: { sandboxResources: { limits } } }) as unknown as TrainingRunSpec;
  assert.equal(durationClock(clock({ cpu: 2 })), "Active");
  assert.equal(durationClock(clock({ "nvidia.com/gpu": "1" })), "Wall");
  assert.equal(durationClock(clock({ "nvidia.com/gpu": 0 })), "Active");
  assert.equal(durationClock(clock({ "nvidia.com/gpu": 1 }, "Active")), "Active");
  assert.equal(durationClock(clock({}, "Wall")), "Wall");
});

test("the chance of completion is the product-limit estimate", () => {
  const chance = completionChance([1, 2, 4, 5], [3, 3]);
  assert.equal(chance(2), 1);
  assert.equal(chance(3), 1);
  assert.ok(Math.abs(chance(4) - (1 - 1 / 4) * (1 - 1 / 3)) < 1e-12);
});

test("Completion gives abandoned lengths more weight", () => {
  const weights = durationWeights([ran(1), ran(1), ran(8)], { ...options, durationWeighting: "Completion" }, [4, 4]);
  assert.ok(weights[2] > weights[0]);
  assert.ok(Math.abs(weights.reduce((a, b) => a + b) / 3 - 1) < 1e-12);
});

test("durationWeighting Auto is Paper if slow samples are lost, else Off; other settings are kept", () => {
  const weighting = (given: Algorithm["durationWeighting"], collection: Algorithm["collection"]) =>
    durationWeighting({ durationWeighting: given, collection });
  assert.equal(weighting("Auto", "Discard"), "Paper");
  for (const collection of ["CarryOver", "WaitAll"] as const) {
    assert.equal(weighting("Auto", collection), "Off");
    assert.equal(weighting("Paper", collection), "Paper");
  }
  assert.equal(weighting("Off", "Discard"), "Off");
});
