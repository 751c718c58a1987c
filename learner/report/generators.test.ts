import assert from "node:assert/strict";
import { test } from "node:test";
import type { IterationMetrics } from "../metrics/iteration.ts";
import { generatorSentence } from "./generators.ts";

const lines = (...counts: (IterationMetrics["generation"] | undefined)[]) =>
  counts.map((generation) => ({ generation }) as IterationMetrics);

test("the report sums the generators' events over all iterations, and says nothing in a run without generators", () => {
  const none = { faults: { lost: 0, oldVersion: 0, logProbs: 0 }, movedRows: 0, uncheckedRows: 0 };
  assert.equal(generatorSentence(lines(undefined)), "");
  assert.equal(generatorSentence(lines(none)), "Generators wrote the solutions. None failed.");
  const some = { faults: { lost: 1, oldVersion: 0, logProbs: 1 }, movedRows: 3, uncheckedRows: 0 };
  const text = generatorSentence(lines(some, none, { ...some, faults: { ...some.faults, lost: 0 } }));
  assert.match(text, /A generator did not answer once, gave other log-probs than the learner's 2 times; /);
  assert.match(text, / 6 rows were written by another generator/);
});
