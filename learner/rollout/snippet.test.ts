import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { fileSnippet, packagesOf, readPromptTask } from "./snippet.ts";

const cases: [string, string, string, number, ReturnType<typeof fileSnippet>][] = [
  ["table", "a.csv", "x,y\n1,2\n3,4\n5,6\n", 2, [{ file: "a.csv", head: "x,y", records: ["1,2", "3,4"] }]],
  ["carriage returns", "a.csv", "x\r\n1\r\n", 2, [{ file: "a.csv", head: "x", records: ["1"] }]],
  ["quoted line break", "a.csv", 'x\n"a\nb"\nc\n', 1, [{ file: "a.csv", head: "x", records: ['"a\nb"'] }]],
  ["doubled quotes", "a.csv", 'x\n"a""b"\nc\n', 2, [{ file: "a.csv", head: "x", records: ['"a""b"', "c"] }]],
  ["no last line break", "a.csv", "x\n1", 2, [{ file: "a.csv", head: "x", records: ["1"] }]],
  ["header only", "a.tsv", "x\ty\n", 2, [{ file: "a.tsv", head: "x\ty", records: [] }]],
  ["empty table", "a.csv", "", 2, []],
  [
    "array",
    "a.json",
    '[{"a": 1},\n {"a": [2, 3]}, {"a": 4}]',
    2,
    [{ file: "a.json", records: ['{"a": 1}', '{"a": [2, 3]}'] }],
  ],
  ["short array", "a.json", "[1, 2]", 5, [{ file: "a.json", records: ["1", "2"] }]],
  ["empty array", "a.json", "[]", 5, [{ file: "a.json", records: [] }]],
  ["brackets in strings", "a.json", '["],[", "\\"]"]', 5, [{ file: "a.json", records: ['"],["', '"\\"]"'] }]],
  ["object", "a.json", '{"a": 1}', 5, [{ file: "a.json", records: ['{"a": 1}'] }]],
  ["lines of JSON", "a.jsonl", '{"a": 1}\n{"a": 2}\n', 1, [{ file: "a.jsonl", records: ['{"a": 1}'] }]],
  [
    "JSON over several lines",
    "a.json",
    '[\n    {\n        "a": 1\n    }\n]',
    5,
    [{ file: "a.json", records: ['{"a":1}'] }],
  ],
  [
    "digits beyond 2^53",
    "a.json",
    '[{\n"a": -1712345678901234567}]',
    5,
    [{ file: "a.json", records: ['{"a":-1712345678901234567}'] }],
  ],
  ["long record", "a.txt", `${"x".repeat(2000)}\n`, 1, [{ file: "a.txt", records: [`${"x".repeat(1000)}...`] }]],
  ["image", "a.png", "x", 1, []],
  ["no extension", "README", "x", 1, []],
];

test("a snippet has the first records of a file", async (t) => {
  for (const [name, file, head, rows, expected] of cases) {
    await t.test(name, () => assert.deepEqual(fileSnippet(file, head, rows), expected));
  }
});

test("prompts name the manifest's packages, else those of actors.packages, else the basic ones", () => {
  const quickstart = readFileSync(new URL("../../manifests/quickstart/trainingrun.yaml", import.meta.url), "utf8");
  const named = (...set: string[]) => packagesOf(parseTrainingRun(quickstart, "quickstart", set).spec).join(" ");
  assert.equal(named(), "numpy pandas scipy scikit-learn");
  assert.match(named("actors.packages=Paper"), /^statsmodels .* torch torchvision lightgbm torch-geometric$/);
  assert.equal(named("actors.packages=Paper", "prompts.packages=[polars]"), "polars");
});

test("prompts show a task folder's files and statement", (t) => {
  const publicDirectory = mkdtempSync(join(tmpdir(), "snippet-"));
  t.after(() => rmSync(publicDirectory, { recursive: true }));
  writeFileSync(join(publicDirectory, "train.csv"), `\uFEFFid,text,y\n1,a,2\n3,b,4\n${"5,c,6\n".repeat(20_000)}`);
  writeFileSync(join(publicDirectory, "test.csv"), "id,text\n7,d\n");
  writeFileSync(join(publicDirectory, "sample_submission.csv"), "id,y\n7,0\n8,0\n9,0\n");
  writeFileSync(join(publicDirectory, "description.md"), "never read");
  mkdirSync(join(publicDirectory, "images/more"), { recursive: true });
  for (const name of ["10.png", "2.png", "more/3.png"]) writeFileSync(join(publicDirectory, "images", name), "xx");
  const source = {
    name: "stones",
    publicDirectory,
    description: "Predict y.",
    grader: { metric: "MAE", idColumn: "id", targetColumns: ["y"], direction: "Lower", rewardFloor: -9 },
    columns: ["id", "text", "y"],
  } as const;
  const task = readPromptTask(source as unknown as Parameters<typeof readPromptTask>[0], 2, ["pandas"]);
  assert.deepEqual(task, {
    name: "stones",
    description: "Predict y.",
    metric: { name: "MAE", direction: "Lower" },
    columns: ["id", "text", "y"],
    files: ["train.csv", "test.csv", "images/", "sample_submission.csv"],
    fileFacts: {
      "train.csv": "120 kB, 20,002 rows",
      "test.csv": "12 B, 1 row",
      "images/": "3 .png files in 1 folder, 6 B, such as 2.png",
      "sample_submission.csv": "17 B, 3 rows",
    },
    profile: {
      file: "train.csv",
      columns: [
        { name: "id", type: "int", missing: 0 },
        { name: "text", type: "text", missing: 0 },
        { name: "y", type: "int", missing: 0 },
      ],
      profiledRows: 20_002,
      complete: true,
      test: { file: "test.csv", lacks: ["y"], adds: [] },
    },
    snippet: [
      { file: "train.csv", head: "id,text,y", records: ["1,a,2", "3,b,4"] },
      { file: "test.csv", head: "id,text", records: ["7,d"] },
    ],
    submissionFormat: ["id,y", "7,0", "8,0"],
    packages: ["pandas"],
  });
  const missing = { ...source, publicDirectory: join(publicDirectory, "gone") };
  assert.throws(() => readPromptTask(missing as unknown as Parameters<typeof readPromptTask>[0], 2), { code: "task" });
});
