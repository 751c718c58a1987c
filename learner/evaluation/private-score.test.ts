/** The facts about a best program's private score: numbers, and intervals by the bootstrap over rows. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { stringify } from "yaml";
import { scratchFolder } from "../store/store.fixture.ts";
import { openTask } from "../tasks/task.ts";
import { grader, writeTaskFolder } from "../tasks/task-folder.fixture.ts";
import { privateFactsOf } from "./private-score.ts";

const folder = scratchFolder();
let made = 0;
const csv = (rows: number, value: (row: number) => number) =>
  `id,y\n${Array.from({ length: rows }, (_, row) => `${row},${value(row)}\n`).join("")}`;
/** A task whose answers are all 0, so that a prediction's size is its error. */
function taskOf(rows: number, change: object = {}) {
  const directory = writeTaskFolder(join(folder, String(made++)), {
    "task.yaml": stringify({ name: "small", grader, privateShare: 0.5, ...change }),
    "prepared/private/answers.csv": csv(rows, () => 0),
    "prepared/public/sample_submission.csv": csv(rows, () => 1),
  });
  return openTask(directory);
}

test("the gap is the public score minus the private one, and the intervals hold both", async () => {
  const task = taskOf(200);
  const predicted = Buffer.from(csv(200, (row) => 10 + (row % 5)));
  const { score } = task.grade(predicted);
  const gaps = [3, -1, 0, 9];
  const facts = (await privateFactsOf(task, predicted, { score: score!, gaps, seed: 1 }))!;
  const { privateScore, gap, rowIntervals, ...rest } = facts;
  assert.deepEqual(rest, { direction: "Lower", publicRows: 100, privateRows: 100, programs: 4, medianGap: 1.5 });
  assert.equal(score! + privateScore!, 24, "the mean of all rows is 12");
  assert.equal(gap, score! - privateScore!);
  for (const [value, interval] of [
    [score!, rowIntervals.score],
    [privateScore!, rowIntervals.privateScore],
    [gap, rowIntervals.gap],
  ] as const) {
    const [low, high] = interval!;
    assert.ok(low < value && value < high, `${low} ${value} ${high}`);
    // The errors' standard deviation is 1.41, of their mean over 100 rows 0.14, of the difference 0.2.
    const width = interval === rowIntervals.gap ? 0.78 : 0.55;
    assert.ok(Math.abs(high - low - width) < 0.08, `${high - low}`);
  }
  assert.deepEqual(await privateFactsOf(task, predicted, { score: score!, gaps, seed: 1 }), facts, "seeded");
  assert.notDeepEqual(
    (await privateFactsOf(task, predicted, { score: score!, gaps, seed: 2 }))!.rowIntervals,
    rowIntervals,
  );
});

test("without a private part there are no facts; with very many rows there are no intervals", async () => {
  const whole = taskOf(4, { privateShare: 0 });
  assert.equal(await privateFactsOf(whole, Buffer.from(csv(4, () => 1)), { score: 1, gaps: [], seed: 0 }), undefined);
  const large = taskOf(50_000);
  const predicted = Buffer.from(csv(50_000, (row) => row % 2));
  const facts = await privateFactsOf(large, predicted, { score: large.grade(predicted).score!, gaps: [], seed: 0 });
  assert.equal(typeof facts!.privateScore, "number");
  assert.deepEqual(facts!.rowIntervals, { score: null, privateScore: null, gap: null });
});

test("a private score that does not exist says why", async () => {
  const pearson = { ...grader, metric: "Pearson", direction: "Higher", rewardRange: { worst: 0, best: 1 } };
  const directory = writeTaskFolder(join(folder, String(made++)), {
    "task.yaml": stringify({ name: "small", grader: pearson, rewardSplit: "Half" }),
    "prepared/private/answers.csv": csv(40, (row) => row % 7),
  });
  const task = openTask(directory);
  const predicted = Buffer.from(csv(40, (row) => (row % 2 === 1 ? 3 : row)));
  const { score, valid } = task.grade(predicted);
  assert.equal(valid, true);
  const facts = (await privateFactsOf(task, predicted, { score: score!, gaps: [], seed: 0 }))!;
  assert.match(facts.noPrivateScore!, /Pearson/);
  assert.deepEqual([facts.privateScore, facts.gap, facts.privateRows], [undefined, undefined, 20]);
});
