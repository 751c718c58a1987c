import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { partsOf } from "../grading/split.ts";
import { TaskError } from "./errors.ts";
import { type InitOptions, initTask } from "./init.ts";
import { openTask } from "./task.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-init-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const from = join(folder, "table.csv");
const rows = Array.from({ length: 40 }, (_, row) => [
  `"a, ${row}"`,
  row * 10,
  ["red", "blue", "green"][row % 3],
  row % 2,
]);
writeFileSync(from, ["size,price,colour,sold", ...rows.map((row) => row.join()), '"no price",,red,1', ""].join("\n"));
const options: InitOptions = { from, target: "price", metric: "RMSE", testShare: 0.25, seed: 0 };
const make = (name: string, change: Partial<InitOptions> = {}) => {
  const directory = join(folder, name);
  const said = initTask(directory, { ...options, ...change }).join("\n");
  const read = (path: string) => readFileSync(join(directory, path), "utf8").trimEnd().split("\n");
  return { directory, said, read };
};

test("a table becomes a task that has each labelled row once and the test set's labels in the answers alone", () => {
  const { directory, said, read } = make("Houses 2");
  const [train, held] = [read("prepared/public/train.csv"), read("prepared/public/test.csv")];
  assert.deepEqual([train.shift(), held.shift()], ["id,size,price,colour,sold", "id,size,colour,sold"]);
  assert.deepEqual([train.length, held.length], [30, 10]);
  const sizes = [...train, ...held].map((line) => /"a, (\d+)"/.exec(line)![1]);
  assert.deepEqual(
    sizes.map(Number).sort((a, b) => a - b),
    Array.from({ length: 40 }, (_, row) => row),
  );
  for (const line of held) assert.match(line, /^\d+,"a, \d+",(red|blue|green),[01]$/, "without the price");
  const answers = read("prepared/private/answers.csv").slice(1);
  for (const [i, line] of held.entries())
    assert.deepEqual(answers[i], `${line.split(",")[0]},${10 * Number(/"a, (\d+)"/.exec(line)![1])}`);
  assert.match(
    said,
    /30 to train on, 10 to test on \(seed 0\).*1 rows without a price were left out.*the column id was added/s,
  );
  assert.equal(statSync(join(directory, "prepared/private")).mode & 0o077, 0, "no other user reads the answers");

  const task = openTask(directory);
  assert.deepEqual([task.name, task.grader.metric, task.grader.targetColumns], ["houses-2", "RMSE", ["price"]]);
  assert.ok(task.grader.rewardRange!.worst > 0 && task.grader.rewardRange!.best === 0);
  assert.equal(task.rewardRangeFrom, undefined, "it stands in task.yaml");
  assert.equal(task.grade(readFileSync(join(directory, "prepared/public/sample_submission.csv"))).valid, true);
  assert.match(task.description, /Predict `price`.*RMSE; lower is better.*- `colour`/s);
});

test("half of the answers are private where they suffice, and the range of rewards is of the others", () => {
  const { directory, said, read } = make("private", { testShare: 0.6 });
  const task = openTask(directory);
  assert.deepEqual([task.spec.privateShare, task.privateRows, task.rows], [0.5, 12, 24]);
  assert.match(said, /^12 of the 24 answers make the private score \(privateShare 0\.5\)$/m);
  assert.ok(read("task.yaml").includes("privateShare: 0.5"));
  const prices = read("prepared/private/answers.csv")
    .slice(1)
    .map((line) => Number(line.split(",")[1]));
  const rows = new Set(partsOf(0.5, "RMSE", [Float64Array.from(prices)], () => 0)!.public);
  const open = prices.filter((_, row) => rows.has(row));
  const mean = open.reduce((sum, price) => sum + price, 0) / open.length;
  const worst = Math.sqrt(open.reduce((sum, price) => sum + (price - mean) ** 2, 0) / open.length);
  assert.equal(task.grader.rewardRange!.worst, Number(worst.toPrecision(4)));

  const few = make("few-answers");
  assert.match(
    few.said,
    /^there is no private score: privateShare 0\.5 leaves 5 of 10 rows in the public part, fewer than 10$/m,
  );
  assert.deepEqual([openTask(few.directory).spec.privateShare, openTask(few.directory).privateRows], [0, undefined]);
});

for (const metric of ["Pearson", "Spearman", "R2"] as const)
  test(`the sample submission of a task has a score: ${metric}`, () => {
    const { directory } = make(`sample-${metric}`, { metric });
    const sample = readFileSync(join(directory, "prepared/public/sample_submission.csv"));
    assert.deepEqual(openTask(directory).grade(sample).reason.code, "valid");
  });

test("the same seed gives the same split, and another seed another split", () => {
  const test1 = make("seed-0").read("prepared/public/test.csv");
  assert.deepEqual(make("seed-0-again").read("prepared/public/test.csv"), test1);
  assert.notDeepEqual(make("seed-1", { seed: 1 }).read("prepared/public/test.csv"), test1);
});

test("a task of probabilities has a column for each class, or one column for a label of 0 and 1", () => {
  const classes = make("classes", { target: "colour", metric: "LogLoss" });
  assert.deepEqual(openTask(classes.directory).grader.targetColumns, ["blue", "green", "red"]);
  for (const line of classes.read("prepared/private/answers.csv").slice(1)) assert.match(line, /,(1,0,0|0,1,0|0,0,1)$/);
  const sample = readFileSync(join(classes.directory, "prepared/public/sample_submission.csv"));
  assert.equal(openTask(classes.directory).grade(sample).valid, true);
  assert.deepEqual(openTask(make("binary", { target: "sold", metric: "LogLoss" }).directory).grader.targetColumns, [
    "sold",
  ]);
});

test("a task of labels has the most frequent label in its sample submission and may take a column as id", () => {
  const { read, directory } = make("labels", { target: "colour", metric: "Accuracy", id: "size" });
  assert.equal(openTask(directory).grader.idColumn, "size");
  for (const line of read("prepared/public/sample_submission.csv").slice(1))
    assert.match(line, /^"(a, \d+|no price)",red$/);
});

const refusals: [name: string, change: Partial<InitOptions>, message: RegExp][] = [
  ["no table", { from: join(folder, "none.csv") }, /^--from .*none\.csv: there is no such file; check the path$/],
  ["a folder for a table", { from: folder }, /^--from .*: is a folder; give a \.csv file$/],
  ["no such target", { target: "cost" }, /^--target cost: .* has no such column; it has size, price, colour, sold$/],
  ["no such id", { id: "key" }, /^--id key: /],
  ["an id that repeats", { id: "colour" }, /column colour does not tell rows apart.*--id/],
  ["an id that is predicted", { id: "price" }, /^--id price: this column is predicted/],
  [
    "numbers of a text",
    { target: "colour" },
    /^--metric RMSE takes numbers, but column colour .* has "red" in row 1; give a metric of labels/,
  ],
  [
    "labels of numbers",
    { metric: "Accuracy" },
    /^--metric Accuracy compares labels, but column price .* has 40 different numbers; give a metric of numbers/,
  ],
  ["a share", { testShare: 1.5 }, /^--test-share 1\.5: give a share between 0 and 1/],
  ["too few rows", { testShare: 0.01 }, /40 rows with a price are too few to split/],
  ["labels that the metric does not take", { target: "price", metric: "F1" }, /answers\.csv does not fit the grader: /],
  ["a name that a task cannot have", { name: "A b" }, /name .*lower-case letters/],
];
for (const [name, change, message] of refusals)
  test(`a table is refused without leaving files: ${name}`, () => {
    const directory = join(folder, `refused-${name.replaceAll(" ", "-")}`);
    assert.throws(
      () => initTask(directory, { ...options, ...change }),
      (error: Error) => {
        assert.ok(error instanceof TaskError || error.name === "ManifestError", String(error));
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /\n/);
        return true;
      },
    );
    assert.equal(existsSync(directory), false);
  });

test("a folder that cannot be made is refused with the reason", () => {
  assert.throws(() => initTask(join(from, "below"), options), {
    code: "input",
    message: /below\/prepared\/public: a part of this path is not a folder; check the path$/,
  });
});

test("a folder that is not empty is refused", () => {
  assert.throws(() => initTask(folder, options), /the folder is not empty; choose another one/);
});
