/** What `longrun task check` finds in a task of one's own; the twelve of MLE-bench are in test/tasks. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { stringify } from "yaml";
import { estimateChat } from "../rollout/estimate-tokens.ts";
import { grader, writeTaskFolder } from "../tasks/task-folder.fixture.ts";
import { checkTask } from "./check.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-check-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const limits = { style: "Paper", maxPromptTokens: 1024, encode: estimateChat } as const;
const check = (name: string, changes: Record<string, string>) =>
  checkTask(writeTaskFolder(join(folder, name), changes), { rows: 3, limits, exact: false });
const task = (rewardRange: object | undefined) => ({
  "task.yaml": stringify({ name: "small", grader: { ...grader, rewardRange } }),
});
const said = ({ findings }: ReturnType<typeof check>) =>
  findings.map(({ severity, problem, remedy }) => `${severity} ${problem}; ${remedy}`).join("\n");

const answers = { "prepared/private/answers.csv": "id,y\n0,100\n1,300\n" };

test("a range is estimated where none is given, and no reward is clamped", () => {
  const found = check("estimated", { ...answers, ...task(undefined) });
  const { worst, best, floor, from, tried } = found.reward!;
  assert.deepEqual([worst, best, floor], [100, 0, -9]);
  assert.match(from!, /estimated from the answers/);
  assert.deepEqual(
    tried.map(({ submission, score, reward, clamped }) => [submission, score, reward + 0, clamped]),
    [
      ["sample submission", 200, -1, false],
      ["constant prediction", 100, 0, false],
      ["answers", 0, 1, false],
    ],
  );
  assert.doesNotMatch(said(found), /rewardFloor/);
});

test("a range that does not fit the scores: how many rewards are clamped, and a range that does", () => {
  const found = check("clamped", { ...answers, ...task({ worst: 10, best: 0 }) });
  assert.match(
    said(found),
    /^warning 1 of 3 rewards are raised to grader\.rewardFloor -9: sample submission \(score 200\); .*rewardRange, for example \{ worst: 100, best: 0 \}/m,
  );
});
