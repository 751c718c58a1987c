import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { type ActorBounds, actorsToDrain, desiredActors, Stabiliser } from "./autoscale.ts";

const bounds: ActorBounds = { min: 1, max: 4, slots: 2, autoscaling: "Demand" };

describe("desiredActors", () => {
  const cases: [queued: number, running: number, change: Partial<ActorBounds>, expected: number][] = [
    [0, 0, {}, 1],
    [0, 0, { min: 0 }, 0],
    [1, 0, { min: 0 }, 1],
    [2, 0, {}, 1],
    [2, 1, {}, 2],
    [3, 1, {}, 2],
    [7, 0, {}, 4],
    [8, 0, {}, 4],
    [1000, 1000, {}, 4],
    [3, 0, { slots: 1 }, 3],
    [0, 0, { min: 4 }, 4],
    [9, 0, { autoscaling: "External", replicas: 7 }, 7],
    [9, 0, { autoscaling: "External", replicas: 0 }, 0],
    [9, 0, { autoscaling: "External" }, 1],
  ];
  for (const [queued, running, change, expected] of cases)
    test(`${queued} queued, ${running} running, ${JSON.stringify(change)}: ${expected}`, () =>
      assert.equal(desiredActors({ queued, running }, { ...bounds, ...change }), expected));

  test("The number of actors is within bounds, and meets the demand unless the bound prevents it", () => {
    fc.assert(
      fc.property(
        fc.nat(500),
        fc.nat(500),
        fc.nat(5),
        fc.integer({ min: 5, max: 50 }),
        fc.integer({ min: 1, max: 8 }),
        (queued, running, min, max, slots) => {
          const desired = desiredActors({ queued, running }, { ...bounds, min, max, slots });
          assert.ok(desired >= min && desired <= max);
          assert.ok(desired === max || desired * slots >= queued + running);
          assert.ok(desired === min || (desired - 1) * slots < queued + running);
        },
      ),
    );
  });
});

test("The stabiliser scales up at once and down after the window", () => {
  const stabiliser = new Stabiliser(60);
  const steps: [atSeconds: number, desired: number, expected: number][] = [
    [0, 2, 2],
    [1, 5, 5],
    [2, 1, 5],
    [60.5, 1, 5],
    [61.5, 1, 1],
    [70, 3, 3],
    [131, 0, 0],
  ];
  for (const [at, desired, expected] of steps) assert.equal(stabiliser.next(desired, at), expected, `at ${at} s`);
});

describe("actorsToDrain", () => {
  const load = (...running: number[]) => running.map((count, index) => ({ name: `actor-${index}`, running: count }));
  const cases: [running: number[], desired: number, expected: string[]][] = [
    [[0, 0], 2, []],
    [[0, 0], 3, []],
    [[0, 0], 1, ["actor-1"]],
    [[0, 1], 1, ["actor-0"]],
    [[2, 1, 0], 1, ["actor-2", "actor-1"]],
    [[1, 1, 1], 0, ["actor-2", "actor-1", "actor-0"]],
    [[], 0, []],
  ];
  for (const [running, desired, expected] of cases)
    test(`${JSON.stringify(running)} to ${desired}: ${expected.join(", ")}`, () =>
      assert.deepEqual(actorsToDrain(load(...running), desired), expected));
});
