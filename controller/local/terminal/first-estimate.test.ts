import assert from "node:assert/strict";
import { test } from "node:test";
import { messages } from "../../../proto/service.ts";
import { FirstEstimate } from "./first-estimate.ts";

const { Phase } = messages;
const watched = (statuses: [seconds: number, iteration: number, phase: number, done: number, total: number][]) => {
  let now = 0;
  const estimate = new FirstEstimate(() => now);
  return statuses.map(([seconds, iteration, phase, phaseDone, phaseTotal]) => {
    now = seconds * 1000;
    return estimate.take({ iteration, phase, phaseDone, phaseTotal });
  });
};

test("an estimate comes once, when half of the first responses have ended", () => {
  const { GENERATING, STARTING } = Phase;
  assert.deepEqual(
    watched([
      [0, 0, STARTING, 0, 0],
      [10, 1, GENERATING, 0, 16],
      [30, 1, GENERATING, 7, 16],
      [60, 1, GENERATING, 8, 16],
      [90, 1, GENERATING, 16, 16],
      [99, 2, GENERATING, 16, 16],
    ]),
    [undefined, undefined, undefined, 200, undefined, undefined],
  );
});

test("there is none for short iterations and for later ones", () => {
  const { GENERATING } = Phase;
  assert.deepEqual(
    watched([
      [0, 1, GENERATING, 0, 8],
      [9, 1, GENERATING, 8, 8],
    ]),
    [undefined, undefined],
  );
  assert.deepEqual(
    watched([
      [0, 7, GENERATING, 0, 8],
      [900, 7, GENERATING, 8, 8],
    ]),
    [undefined, undefined],
  );
});
