/** What a run shows of itself while no program is valid, and once one is. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { deflateSync } from "node:zlib";
import type { IterationMetrics } from "./metrics/iteration.ts";
import { newSummary, readSummary } from "./metrics/summary.ts";
import { RunFiles, type RunFilesOptions } from "./run-files.ts";
import { newResult, newSample, scratchFolder } from "./store/store.fixture.ts";
import { openStore } from "./store/store.ts";

const directory = scratchFolder();
const store = openStore(join(directory, "store.sqlite"));
after(() => store.close());
await store.beginLineage(async () => false);
const finish = (id: string, terminalOutput: string, grade: { valid: boolean; score?: number }) => {
  store.addSamples([newSample(id, { lineage: store.lineage })]);
  const [attempt] = store.leases.takeAll(["actor"]);
  const text = Buffer.from("id,y\n");
  const outcome = grade.valid ? "completed" : "failed";
  const written = grade.valid ? { submissionBytes: text.length, submissionSha256: "ab" } : {};
  const result = newResult({ terminalOutput, outcome, ...written });
  store.leases.accept("actor", attempt!, result, grade.valid ? deflateSync(text) : undefined);
  store.setGrade(id, { ...grade, reward: 0, reason: grade.valid ? "valid" : "failed" });
};
const files = new RunFiles({
  ...{ directory, store, server: { actors: () => [] }, report: { request: () => {} }, status: { update: () => {} } },
  ...{ task: { name: "diamonds", grader: { metric: "MAE", direction: "Lower" } }, summary: newSummary(undefined, {}) },
  progress: { state: { iteration: 1, elapsedSeconds: 1 }, lines: [] },
} as unknown as RunFilesOptions);
const updated = async () => {
  await files.update({} as IterationMetrics);
  return (await readSummary(directory))?.commonErrors;
};

test("the commonest errors stand in summary.json until a program is valid", async () => {
  finish("a", "KeyError: 'x'\n", { valid: false });
  finish("b", "KeyError: 'y'\n", { valid: false });
  assert.deepEqual(await updated(), [
    { error: "KeyError: 'y'", samples: 2, example: { id: "b", program: "print(1)\n" } },
  ]);
  assert.equal(existsSync(join(directory, "best")), false);
  finish("c", "", { valid: true, score: 1 });
  assert.equal(await updated(), undefined);
});
