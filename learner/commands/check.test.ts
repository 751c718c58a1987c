/** Tests `longrun task check` with a user's own task; test/tasks checks the twelve tasks of MLE-bench. */
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

test("task check estimates a missing range, which clamps no reward", () => {
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

test("task check counts the rewards that a range clamps and names a range that fits", () => {
  const found = check("clamped", { ...answers, ...task({ worst: 10, best: 0 }) });
  assert.match(
    said(found),
    /^warning 1 of 3 rewards are raised to grader\.rewardFloor -9: sample submission \(score 200\); .*rewardRange, for example \{ worst: 100, best: 0 \}/m,
  );
});

const table = (columns: Record<string, (row: number) => unknown>): string => {
  const rows = Array.from({ length: 40 }, (_, row) => Object.values(columns).map((cell) => cell(row)));
  return `${[Object.keys(columns), ...rows].map((row) => row.join()).join("\n")}\n`;
};
const noise = (row: number) => (row * 7919) % 101;
const large = 1712345678901234567n; // beyond 2^53, so that doubles make neighbours equal
const copies: [name: string, columns: Record<string, (row: number) => unknown>, expected: RegExp | undefined][] = [
  ["equal", { a: noise }, /^error a equals the label y in every row of train\.csv; leave a out/m],
  ["equal as numbers", { a: (row) => `${noise(row)}.0` }, /^error a equals the label y/m],
  ["a multiple", { a: (row) => -2.5 * noise(row) }, /^warning a is one-to-one with the label y/m],
  [
    "names of classes",
    { y: (row) => row % 3, a: (row) => "xyz"[row % 3] },
    /^warning a is one-to-one with the label y/m,
  ],
  ["names that two classes share", { y: (row) => row % 3, a: (row) => "xyy"[row % 3] }, undefined],
  ["two names of one class", { y: (row) => Math.min(row % 3, 1), a: (row) => "xyz"[row % 3] }, undefined],
  ["almost equal", { a: (row) => noise(row) + (row === 9 ? 50.5 : 0) }, undefined],
  ["ids", { a: (row) => `i${row}` }, undefined],
  [
    "large and almost equal",
    { y: (row) => large + BigInt(noise(row)), a: (row) => large + BigInt(noise(row) ^ 1) },
    undefined,
  ],
  [
    "large and equal",
    { y: (row) => large + BigInt(noise(row)), a: (row) => large + BigInt(noise(row)) },
    /^error a equals the label y/m,
  ],
  [
    "large and monotonic",
    { y: (row) => large + BigInt(noise(row)), a: (row) => large + 3n * BigInt(noise(row)) },
    /^warning a is one-to-one with the label y/m,
  ],
];
for (const [name, columns, expected] of copies)
  test(`task check finds a feature that gives the label away: ${name}`, () => {
    const train = table({ id: (row) => 100 + row, y: noise, ...columns });
    const found = said(
      check(name.replaceAll(" ", "-"), {
        ...task(undefined),
        "prepared/public/train.csv": train,
        "prepared/public/test.csv": "id,a\n0,1\n1,2\n",
      }),
    );
    if (expected) assert.match(found, expected);
    else assert.doesNotMatch(found, /the label/);
  });
