import assert from "node:assert/strict";
import { test } from "node:test";
import { resolvedText, withEarlierRange } from "./resolved.ts";
import { parseResolved, parseTrainingRun, type TrainingRun } from "./trainingrun.ts";

const run = (grader: string): TrainingRun =>
  parseTrainingRun(
    `{ apiVersion: longrun.dev/v1alpha1, kind: TrainingRun, metadata: { name: a }, spec: { model: { policy: quickstart },
       tasks: [{ name: own, publicData: { path: a }, privateData: { path: b }, grader: { ${grader} } }] } }`,
    "a.yaml",
  );
const GRADER = "metric: RMSE, idColumn: id, targetColumns: [y], direction: Lower";
const plain = run(GRADER);
const ranged = run(`${GRADER}, rewardRange: { worst: 30, best: 0 }`);
const other = run(`${GRADER}, rewardRange: { worst: 31, best: 0 }`);

test("A resolved manifest reads back unchanged; a note on the range stays while the range does", () => {
  const text = resolvedText(ranged, { notes: { own: "estimated" } });
  assert.match(text, /^# The resolved manifest of this run: every default is filled in\.\n/);
  assert.match(text, /rewardRange:\n +# estimated\n +worst: 30\n/);
  assert.deepEqual(parseResolved(text, "b.yaml"), ranged);
  assert.equal(resolvedText(ranged, { earlier: text }), text);
  assert.doesNotMatch(resolvedText(other, { earlier: text }), /estimated/, "the note does not apply to another range");
  assert.doesNotMatch(resolvedText(plain, { earlier: text, notes: { own: "estimated" } }), /estimated/);
});

test("A run keeps the range that it estimated when it began", () => {
  assert.deepEqual(withEarlierRange(plain, ranged), ranged);
  assert.equal(withEarlierRange(plain, undefined), plain);
  assert.equal(withEarlierRange(plain, plain), plain);
  assert.equal(withEarlierRange(other, ranged), other, "a given range is not replaced");
  const bounded = run(`${GRADER}, bounds: { least: 0 }`);
  assert.equal(withEarlierRange(bounded, ranged), bounded, "another grader has another range");
});
