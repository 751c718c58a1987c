import assert from "node:assert/strict";
import { test } from "node:test";
import type { EvaluationSettings, EvaluationSummary } from "../metrics/summary.ts";
import type { EvaluatedProgram } from "./figures.ts";
import { summarize } from "./figures.ts";
import { type Evaluated, tableCsv, tableMarkdown, tableOf } from "./table.ts";

const settings = (task: string, change: Partial<EvaluationSettings> = {}): EvaluationSettings => ({
  ...{ task, metric: "LogLoss", direction: "Lower", rewardSplit: "Full", protocol: "Paper" },
  ...{ samples: 2, temperature: 0.7, seed: 0, confidence: 0.95, ...change },
});
const program = (kind: EvaluatedProgram["kind"], score?: number): EvaluatedProgram => ({
  ...{ id: `${kind}${score}`, kind, valid: score !== undefined },
  ...(score !== undefined && { score, reported: score }),
});
const policy = (scratch?: number, improve?: number): EvaluationSummary =>
  summarize(
    [program("scratch", scratch), program("improve", improve)],
    { direction: "Lower" },
    { iteration: 1, lost: 0, seed: 0 },
  );
const run = (
  folder: string,
  task: string,
  before: EvaluationSummary,
  after: EvaluationSummary,
  change: Partial<EvaluationSettings> = {},
): Evaluated => ({ folder, evaluation: { settings: settings(task, change), before, after } });

const RUNS = [
  run("a", "spooky-author-identification", policy(0.6, 0.58), policy(0.45, 0.4)),
  run("b", "spooky-author-identification", policy(undefined, undefined), policy(0.44, 0.41), { seed: 1 }),
  run("c", "leaf-classification", policy(), policy(0.5, 0.124)),
  run("d", "own", policy(299.5, 310), policy(1, 2)),
];

test("the table has tasks in the paper's order, with mean +/- standard error as the paper prints them", () => {
  const text = tableMarkdown(tableOf(RUNS));
  const best = text.slice(text.indexOf("Best score"), text.indexOf("Mean score")).trim().split("\n").slice(2);
  const cells = best.map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  assert.deepEqual(cells[0], [
    ...["Tasks", "before, from scratch", "before, improve previous", "before, both"],
    ...["after RL, from scratch", "after RL, improve previous", "after RL, both"],
  ]);
  assert.deepEqual(
    cells.slice(2).map(([task]) => task),
    ["leaf-classification (↓)", "spooky-author-identification (↓)", "own (↓)"],
  );
  assert.deepEqual(cells[2]!.slice(1), ["N/A", "N/A", "N/A", "0.500", "0.124", "0.124"]);
  assert.deepEqual(cells[3]!.slice(1), [
    ...["0.600 (1 of 2)", "0.580 (1 of 2)", "0.580 (1 of 2)"],
    ...["0.445 +/- 0.005", "0.405 +/- 0.005", "0.405 +/- 0.005"],
  ]);
  assert.equal(new Set(best.map((line) => line.length)).size, 1, "columns are padded");
});

test("the table as CSV has unrounded numbers", () => {
  const lines = tableCsv(tableOf(RUNS)).trimEnd().split("\n");
  const head = lines[0]!.split(",");
  const row = (statistic: string, task: string) => {
    const cells = lines.map((line) => line.split(",")).find((cells) => cells[0] === task && cells[3] === statistic)!;
    return Object.fromEntries(head.map((name, index) => [name, cells[index]]));
  };
  const spooky = row("best", "spooky-author-identification");
  assert.equal(spooky.after_scratch, "0.445");
  assert.ok(Math.abs(Number(spooky.after_scratch_standard_error) - 0.005) < 1e-12);
  assert.deepEqual(
    [spooky.before, spooky.before_standard_error, spooky.before_runs, spooky.runs],
    ["0.58", "", "1", "2"],
  );
  assert.equal(row("valid", "spooky-author-identification").before, "0.5");
  assert.deepEqual([row("mean", "own").after, row("mean", "own").metric], ["1.5", "LogLoss"]);
  assert.equal(lines.length, 1 + 3 * 3);
});

test("the table without improvements has one column for each policy", () => {
  const plain = (folder: string): Evaluated => {
    const summary = summarize([program("scratch", 0.5)], { direction: "Lower" }, { iteration: 0, lost: 0, seed: 0 });
    return { folder, evaluation: { settings: settings("own", { protocol: "Scratch" }), model: summary } };
  };
  assert.deepEqual(
    tableOf([plain("a"), plain("b")]).columns.map(({ head }) => head),
    ["model"],
  );
});

const unlike: [name: string, change: Partial<EvaluationSettings>, message: RegExp][] = [
  [
    "protocol",
    { protocol: "Equal" },
    /^e was evaluated with protocol Equal, a with Paper: such numbers do not compare/,
  ],
  ["samples", { samples: 64 }, /^e was evaluated with samples 64, a with 2/],
  ["split", { rewardSplit: "Half" }, /^e was evaluated with rewardSplit Half, a with Full/],
  ["share", { privateShare: 0.5 }, /^e was evaluated with privateShare 0.5, a with 0/],
  ["metric", { metric: "RocAuc" }, /^e has task spooky-author-identification by RocAuc, a by LogLoss/],
];
for (const [name, change, message] of unlike)
  test(`the table is refused if evaluations differ in ${name}`, () => {
    const other = run("e", "spooky-author-identification", policy(1, 1), policy(1, 1), change);
    assert.throws(() => tableOf([RUNS[0]!, other]), { message });
  });
