import assert from "node:assert/strict";
import { test } from "node:test";
import { mleBenchTask } from "../grading/mlebench-tasks.ts";
import type { Evaluation } from "../metrics/summary.ts";
import { changeOf, type EvaluatedProgram, summarize } from "./figures.ts";
import { evaluationMarkdown } from "./rows.ts";

const { leaderboard } = mleBenchTask("spooky-author-identification")!;
const scale = { direction: "Lower", leaderboard } as const;
const programs = (scores: (number | undefined)[], kind: EvaluatedProgram["kind"] = "scratch"): EvaluatedProgram[] =>
  scores.map((score, index) => ({
    ...{ id: `${kind}${index}`, kind, previous: kind === "improve" ? "scratch0" : undefined },
    ...{ valid: score !== undefined, score, reported: score, durationSeconds: 1 },
  }));
const before = [...programs([0.6, undefined]), ...programs([0.5, 0.7], "improve")];
const after = [...programs([0.3, 0.4]), ...programs([0.25, 0.28], "improve")];
const summary = (programs: EvaluatedProgram[], iteration: number) =>
  summarize(programs, scale, { iteration, lost: 1, seed: 0 });
const evaluation: Evaluation = {
  settings: {
    ...{ task: "spooky-author-identification", metric: "LogLoss", direction: "Lower", rewardSplit: "Full" },
    ...{ protocol: "Paper", samples: 2, temperature: 0.7, seed: 3, confidence: 0.95 },
  },
  before: summary(before, 0),
  after: summary(after, 12),
  change: changeOf(before, after, scale, 0),
};

test("an evaluation's Markdown names the protocol, both kinds of prompt, intervals, medals and the change", () => {
  const text = evaluationMarkdown(evaluation);
  assert.match(
    text,
    /Protocol paper: 2 programs from scratch and 2 improvements .*the better of the two counts; seed 3/,
  );
  assert.match(text, /LogLoss, lower is better\./);
  assert.match(text, /2 executions were lost/);
  const rows = text.split("\n").filter((line) => line.startsWith("|"));
  assert.equal(new Set(rows.map((row) => row.length)).size, 1, "padded");
  const cells = rows.map((row) =>
    row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  assert.deepEqual(cells[0], ["", "before training", "after 12 iterations", "change"]);
  const cameLater = evaluationMarkdown({ ...evaluation, before: summary(before, 5) });
  assert.match(cameLater, /\| before the task, after 5 iterations +\|/);
  const of = (label: string) => cells.filter(([first]) => first === label);
  assert.deepEqual(
    of("programs").map((row) => row.slice(1, 3)),
    [
      ["4", "4"],
      ["2", "2"],
      ["2", "2"],
    ],
  );
  assert.match(of("valid")[0]![1]!, /^75 % \[\d+ %, 100 %\]$/);
  assert.match(of("valid")[0]![3]!, /^\+25 \[.*\] points$/);
  assert.match(of("best LogLoss")[0]![2]!, /^0\.250 \[0\.250, 0\.\d+\]$/);
  assert.match(of("best LogLoss")[0]![3]!, /^−0\.250 \[/);
  assert.deepEqual(
    of("medal of the best").map((row) => row.slice(1, 3)),
    [
      ["none", "silver"],
      ["none", "none"],
      ["none", "silver"],
    ],
  );
  assert.deepEqual(of("gold, silver, bronze")[0]!.slice(1, 3), ["0, 0, 0", "0, 1, 1"]);
  assert.match(of("above median")[0]![2]!, /^100 % /);
  assert.match(
    text,
    /programs\/before-scratch\/program\.py, programs\/before-improve\/program\.py, programs\/after-scratch/,
  );
  assert.doesNotMatch(text, /NaN|undefined|null/);
});

test("the interval of a best score ends at it, but not of a private one, which did not choose the program", () => {
  const ends = /the interval of a best score ends at the best score that was seen/;
  assert.match(evaluationMarkdown(evaluation), ends);
  const shared = { ...evaluation.settings!, privateShare: 0.5 };
  assert.doesNotMatch(evaluationMarkdown({ ...evaluation, settings: shared }), ends);
  const chosen: EvaluatedProgram = { id: "a", kind: "scratch", valid: true, score: 1, reported: 5 };
  const all = [chosen, { ...chosen, id: "b", score: 2, reported: 3 }];
  const { bestScore, intervals } = summarize(
    all,
    { direction: "Lower", isSplit: true },
    { iteration: 0, lost: 0, seed: 0 },
  );
  assert.deepEqual([bestScore, intervals.bestScore], [5, [3, 5]]);
});

test("an evaluation's Markdown says that there are no valid programs, improvements or medals", () => {
  const none = summarize(programs([undefined, undefined]), { direction: "Higher" }, { iteration: 0, lost: 0, seed: 0 });
  const settings = { ...evaluation.settings!, protocol: "Scratch" as const, rewardSplit: "Half" as const };
  const text = evaluationMarkdown({ settings, model: none });
  assert.match(text, /Protocol scratch: 2 programs from scratch, none improved/);
  assert.match(text, /The private score is on the 50 % of the answers that no reward has seen; the public score/);
  assert.match(text, /\| best private LogLoss /);
  assert.match(text, /No program was valid\./);
  assert.doesNotMatch(text, /medal|median|NaN|undefined|null/);
});
