/** Tests a run's files before and after its first valid program. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { deflateSync } from "node:zlib";
import type { IterationMetrics } from "./metrics/iteration.ts";
import { newSummary, readSummary } from "./metrics/summary.ts";
import { RunFiles, type RunFilesOptions } from "./run-files.ts";
import { newResult, newSample, scratchFolder } from "./store/store.fixture.ts";
import { openStore } from "./store/store.ts";
import type { Task } from "./tasks/task.ts";
import { Tasks } from "./tasks/tasks.ts";

const directory = scratchFolder();
const store = openStore(join(directory, "store.sqlite"));
after(() => store.close());
await store.beginLineage(async () => false);
const finish = (id: string, terminalOutput: string, grade: { valid: boolean; score?: number }, task = "diamonds") => {
  store.addSamples([newSample(id, { lineage: store.lineage, task })]);
  const [attempt] = store.leases.takeAll(["actor"]);
  const text = Buffer.from("id,y\n");
  const outcome = grade.valid ? "completed" : "failed";
  const written = grade.valid ? { submissionBytes: text.length, submissionSha256: "ab" } : {};
  const result = newResult({ terminalOutput, outcome, ...written });
  store.leases.accept("actor", attempt!, result, grade.valid ? deflateSync(text) : undefined);
  store.setGrade(id, { ...grade, reward: 0, reason: grade.valid ? "valid" : "failed" });
};
const GRADER = { metric: "MAE", direction: "Lower", targetColumns: ["y"] };
/** Of a task with a private part. */
let split: object = {};
const filesOf = (...tasks: string[]) =>
  new RunFiles({
    ...{ directory, store, server: { actors: () => [] }, report: { request: () => {} }, status: { update: () => {} } },
    summary: newSummary(undefined, {}),
    spec: { seed: 0 },
    tasks: new Tasks(tasks.map((name) => ({ name, grader: GRADER, ...split }) as Task)),
    progress: { state: { iteration: 1, elapsedSeconds: 1 }, lines: [] },
  } as unknown as RunFilesOptions);
const files = filesOf("diamonds");
const updated = async () => {
  await files.update({} as IterationMetrics);
  return (await readSummary(directory))?.commonErrors;
};

test("summary.json has the commonest errors until a program is valid", async () => {
  finish("a", "KeyError: 'x'\n", { valid: false });
  finish("b", "KeyError: 'y'\n", { valid: false });
  assert.deepEqual(await updated(), [
    { error: "KeyError: 'y'", samples: 2, example: { id: "b", program: "print(1)\n" } },
  ]);
  assert.equal(existsSync(join(directory, "best")), false);
  finish("c", "", { valid: true, score: 1 });
  assert.equal(await updated(), undefined);
});

test("each of several tasks has its best program in its own folder, also after the task is removed", async () => {
  const program = (task: string) => existsSync(join(directory, "best", task, "program.py"));
  assert.ok(program("."));
  const two = filesOf("diamonds", "wage");
  finish("d", "", { valid: true, score: 7 }, "wage");
  await two.update({} as IterationMetrics);
  assert.deepEqual([program("."), program("diamonds"), program("wage")], [false, true, true]);
  const score = JSON.parse(readFileSync(join(directory, "best", "wage", "score.json"), "utf8"));
  assert.deepEqual([score.id, score.score], ["d", 7]);
  finish("e", "", { valid: true, score: 0.5 });
  await filesOf("diamonds").update({} as IterationMetrics);
  assert.deepEqual([program("."), program("wage")], [false, true]);
  assert.match(readFileSync(join(directory, "best", "diamonds", "score.json"), "utf8"), /"id": "e"/);
});

test("the best program has the facts of its private score", async () => {
  split = {
    ...{ rows: 10, privateRows: 4, privateScore: () => ({ score: 0.75, reason: "valid" }) },
    partScores: () => undefined,
  };
  finish("f", "", { valid: true, score: 0.25 });
  store.setGrade("d", { valid: true, score: 7, reward: 0, reason: "valid" }, { score: 5, reason: "valid" });
  store.setGrade("f", { valid: true, score: 0.25, reward: 0, reason: "valid" }, { score: 0.75, reason: "valid" });
  await filesOf("diamonds").update({} as IterationMetrics);
  const score = JSON.parse(readFileSync(join(directory, "best", "diamonds", "score.json"), "utf8"));
  const { privateScore, gap, medianGap, programs, publicRows, rowIntervals } = score;
  assert.deepEqual([score.id, privateScore, gap, medianGap], ["f", 0.75, -0.5, -0.5]);
  assert.deepEqual([programs, publicRows], [1, 6], "the other program is of another task");
  assert.deepEqual(rowIntervals, { score: null, privateScore: null, gap: null });
});
