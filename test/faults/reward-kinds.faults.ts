/**
 * Seeded runs of real processes with each kind of reward (`tasks[].reward`): stopped, resumed and replayed. Every stored reward is computed
 * again here, from the store's scores alone, by the formulas of learner/grading/README.md.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { readRegistry } from "../../learner/tasks/registry.ts";
import { assertAccounted, RealRun, temporaryFolder } from "./real-run.ts";

const folder = temporaryFolder();
const runs: RealRun[] = [];
after(() => {
  for (const run of runs) run.stop();
  folder.remove();
});

const ITERATIONS = 4;
const { rewardRange: range } = readRegistry().diamonds!.task.grader as { rewardRange: { worst: number; best: number } };

function start(name: string, options: Omit<ConstructorParameters<typeof RealRun>[1], "iterations">): RealRun {
  const run = new RealRun(join(folder.path, name), { iterations: ITERATIONS, ...options });
  runs.push(run);
  return run;
}

interface Row {
  id: string;
  iteration: number;
  previous: string | null;
  used: number | null;
  valid: number;
  score: number;
  reward: number;
}

const rowsOf = (run: RealRun) =>
  run.query(
    `SELECT s.id, s.iteration, s.previous, s.used_iteration AS used, g.valid, g.score, g.reward
     FROM samples s JOIN grades g ON g.sample = s.id WHERE s.purpose = 'training'`,
  ) as unknown as Row[];

type Expected = (row: Row, rows: Row[], range: { worst: number; best: number }) => number;

const kinds: [kind: string, settings: string[], expected: Expected][] = [
  [
    "Medal",
    ["tasks[0].medals={gold: 320, silver: 400, bronze: 700, median: 1000}"],
    ({ score }) => (score <= 320 ? 1 : score <= 400 ? 0.75 : score <= 700 ? 0.5 : score < 1000 ? 0.25 : 0),
  ],
  [
    "Rank",
    [],
    ({ score, iteration }, rows) => {
      const earlier = rows.filter(({ valid, used }) => valid && used !== null && used <= iteration);
      const equal = 1 + earlier.filter((row) => row.score === score).length;
      return (earlier.filter((row) => row.score > score).length + equal / 2) / (earlier.length + 1);
    },
  ],
  [
    "Improvement",
    [],
    ({ score, previous }, rows, { worst, best }) => {
      let parent = rows.find(({ id }) => id === previous);
      while (parent && !parent.valid) parent = rows.find(({ id }) => id === parent!.previous);
      return (score - (parent?.score ?? worst)) / (best - worst);
    },
  ],
];

for (const [kind, settings, expected] of kinds)
  test(`reward ${kind}: a stopped and resumed run has the rewards of the formula, and a replay its weights`, async (t) => {
    const reward = [`tasks[0].reward=${kind}`, ...settings];
    const broken = start(kind, { settings: reward });
    await broken.reached(1);
    broken.child.kill("SIGINT");
    await broken.ended;
    const run = start(kind, { resume: true });
    assert.equal((await run.ended).status, 0, run.output);
    assertAccounted(run, ITERATIONS);

    const rows = rowsOf(run);
    const valid = rows.filter((row) => row.valid);
    assert.ok(valid.length >= 3, `${valid.length} valid samples`);
    for (const row of valid) {
      const value = expected(row, rows, range);
      assert.ok(Math.abs(row.reward - value) < 1e-9, `${row.id}: ${row.reward}, not ${value}`);
    }
    const invalid = rows.filter((row) => !row.valid).map((row) => row.reward);
    assert.ok(Math.min(...valid.map((row) => row.reward)) > Math.max(-9.3, ...invalid));
    const different = new Set(valid.map((row) => row.reward)).size;
    t.diagnostic(`${valid.length} valid of ${rows.length} samples with ${different} different rewards`);
    assert.ok(different > 1, "the rewards differ");
    if (kind === "Improvement")
      assert.ok(
        valid.some(({ previous }) => previous !== null),
        "a program has a parent",
      );

    const replayed = start(`${kind}-replayed`, { settings: reward, replay: join(run.directory, "store.sqlite") });
    assert.equal((await replayed.ended).status, 0, replayed.output);
    assert.equal(replayed.newestDigest(), run.newestDigest());
  });

test("a task without medals is refused before the run begins", async () => {
  const run = start("refused", { settings: ["tasks[0].reward=Medal"] });
  const { status, output } = await run.ended;
  assert.equal(status, 2, output);
  assert.match(output, /reward Medal needs scores that earn medals, .*; give tasks\[\]\.medals, or another reward/);
});
