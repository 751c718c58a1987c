/** Tests `longrun task check` with a user's own task; test/tasks checks the twelve tasks of MLE-bench. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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

const ranges: [name: string, changes: Record<string, unknown>, range: object, expected: RegExp][] = [
  // The constant 100 scores 100, the sample submission 1e6 - 200: no reward is clamped from a worst score of 99,980 on.
  [
    "lower is better",
    {},
    { worst: 100, best: 0 },
    /; if your programs are no better, widen grader\.rewardRange, for example \{ worst: 99980, best: 0 \}, in which/m,
  ],
  ["a worst end of many digits", {}, { worst: 100.0001, best: 0 }, /example \{ worst: 99980, best: 0 \},/m],
  [
    "higher is better",
    { metric: "R2", direction: "Higher" },
    { worst: 0, best: 1 },
    /example \{ worst: -[\d.e+]+, best: 1 \},/m,
  ],
];
for (const [name, changes, rewardRange, expected] of ranges)
  test(`task check does not suggest the range that is set: ${name}`, () => {
    const files = {
      ...answers,
      "prepared/public/sample_submission.csv": "id,y\n0,1000000\n1,1000000\n",
      "task.yaml": stringify({ name: "small", grader: { ...grader, ...changes, rewardRange } }),
    };
    const problem = said(check(`range-${name}`, files));
    assert.match(problem, expected);
    const [, worst, best] = /worst: (\S+), best: (\S+) /.exec(problem)!;
    const again = { ...grader, ...changes, rewardRange: { worst: Number(worst), best: Number(best) } };
    const found = check(`range-again-${name}`, { ...files, "task.yaml": stringify({ name: "small", grader: again }) });
    assert.doesNotMatch(said(found), /rewardRange/);
  });

test("task check says that constant answers are no task, not that the sample submission is the answers", () => {
  const same = "id,y\n0,5\n1,5.0\n";
  const found = said(
    check("constant", { "prepared/private/answers.csv": same, "prepared/public/sample_submission.csv": same }),
  );
  assert.match(
    found,
    /^error every row of the answers has the same y: 5, so any constant is a perfect prediction; choose/m,
  );
  assert.doesNotMatch(found, /the same file/);
  const several = "id,y\n0,5\n1,6\n";
  const copied = { "prepared/private/answers.csv": several, "prepared/public/sample_submission.csv": several };
  assert.match(
    said(check("copied", copied)),
    /public\/sample_submission\.csv is the same file as private\/answers\.csv/,
  );
});

test("task check finds tables that programs would read otherwise than they are meant", () => {
  const shapes = said(
    check("shapes", {
      "prepared/public/train.csv": "id,a,y\n2,1,1,\n3,2,2,\n",
      "prepared/public/more.csv": "id;a\n2;1\n",
      "prepared/public/single.csv": "id\n2\n",
    }),
  );
  assert.match(
    shapes,
    /^warning train\.csv: the header has 3 names, but rows have 4 cells: pandas takes .*; remove the delimiters/m,
  );
  assert.match(
    shapes,
    /^warning more\.csv has one column, id;a: it seems to be delimited by ";"; write it with commas/m,
  );
  assert.doesNotMatch(shapes, /single/);
  const path = join(writeTaskFolder(join(folder, "latin")), "prepared/public/train.csv");
  writeFileSync(path, Buffer.from("id,größe,y\n2,1,1\n", "latin1"));
  const latin = checkTask(join(folder, "latin"), { rows: 3, limits, exact: false });
  assert.match(
    said(latin),
    /^error train\.csv: the file is not UTF-8 text; convert it with: iconv -f ENCODING -t UTF-8/m,
  );
});

test("task check finds a column of the test set that looks like the target or the id", () => {
  const found = said(check("twins", { "prepared/public/test.csv": "id ,Y\n0,1\n1,2\n" }));
  assert.match(
    found,
    /^warning test\.csv has the column "Y", which differs from the target y only in other capitals; if it is/m,
  );
  assert.match(
    found,
    /^error test\.csv has no column id, which a submission needs: it has "id ", with a blank at the end; add it/m,
  );
});

test("task check finds labels that mean a missing value to pandas", () => {
  const files = {
    "prepared/public/train.csv": `id,a,y\n${["None", "x", "NA", "", "None"].map((y, row) => `${row},${row},${y}`).join("\n")}\n`,
    "prepared/private/answers.csv": "id,y\n0,x\n1,None\n",
    "prepared/public/sample_submission.csv": "id,y\n0,x\n1,x\n",
    "task.yaml": stringify({
      name: "small",
      grader: { ...grader, metric: "Accuracy", direction: "Higher", rewardRange: undefined },
    }),
  };
  assert.match(
    said(check("none", files)),
    /^warning y is "None" in 3 of 5 rows of train\.csv, which pandas reads as missing; if it is a label, say/m,
  );
  const told = { ...files, "prepared/public/description.md": "# Small\nRead with keep_default_na=False.\n" };
  assert.doesNotMatch(said(check("none-told", told)), /missing/);
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
    "an id that is sorted by the label",
    { y: (row) => 3 * row },
    /^warning id is one-to-one with the label y .*; leave id out of the table and make the folder again: longrun task init/m,
  ],
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
