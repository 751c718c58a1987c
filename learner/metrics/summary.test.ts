import assert from "node:assert/strict";
import { test } from "node:test";
import { summarize } from "../evaluation/figures.ts";
import { newResult, newSample, scratchFolder } from "../store/store.fixture.ts";
import type { Grade, Sample } from "../store/types.ts";
import { measuredSample } from "./measured-sample.ts";
import { readSummary, writeSummary } from "./summary.ts";

function finished(grade: Grade, change: Partial<Sample> = {}, seconds = 1.5): Sample {
  const result = { ...newResult({ durationSeconds: seconds }), actor: "actor-0", attempt: 1, queueSeconds: 0.5 };
  return { ...newSample("s"), sequence: 1, state: "finished", attempts: 1, createdAt: 0, result, grade, ...change };
}

const valid = (score: number): Grade => ({ valid: true, score, reward: -score, reason: "valid", family: "ridge" });
const failed: Grade = { valid: false, reward: -10, reason: "failed" };
const unwritten = { state: "notExecuted", result: undefined } as const;
const lost = { state: "lost", result: undefined, grade: undefined } as const;

test("summary.json is read as it was written, and a missing file is no error", async () => {
  const folder = scratchFolder();
  assert.equal(await readSummary(folder), undefined);
  const summary = {
    state: "running" as const,
    message: "",
    startedAt: "2026-01-01T00:00:00.000Z",
    updatedAt: "2026-01-01T00:00:00.000Z",
    iterations: 2,
    elapsedSeconds: 9,
    evaluation: { before: summarize([], { direction: "Lower" }, { iteration: 0, lost: 0, seed: 0 }) },
    versions: { node: "v24" },
  };
  await writeSummary(folder, summary);
  assert.deepEqual(await readSummary(folder), summary);
});

const measured: [name: string, sample: Sample, expected: Record<string, unknown>][] = [
  [
    "an executed one",
    finished(valid(3)),
    { outcome: "completed", durationSeconds: 1.5, score: 3, family: "ridge", lag: 2 },
  ],
  [
    "one that was not executed",
    finished(failed, unwritten),
    { outcome: undefined, durationSeconds: undefined, reward: -10 },
  ],
  ["a lost one", finished(failed, lost), { outcome: "lost", valid: false, reward: undefined }],
];

for (const [name, sample, expected] of measured) {
  test(`the metrics read a sample's facts: ${name}`, () => {
    const got = measuredSample({ ...sample, iteration: 4 }, 7) as unknown as Record<string, unknown>;
    const read = Object.fromEntries(Object.keys(expected).map((key) => [key, got[key]]));
    assert.deepEqual(read, expected);
  });
}
