import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { writeTaskFolder } from "../tasks/task-folder.fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-grade-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const command = fileURLToPath(new URL("grade-command.ts", import.meta.url));
const at = (name: string) => join(folder, name);
const grade = (...options: string[]) => spawnSync(process.execPath, [command, ...options], { encoding: "utf8" });

const task = "tabular-playground-series-dec-2021";
writeFileSync(at("answers.csv"), "Id,Elevation,Cover_Type\n1,10,1\n2,20,2\n3,30,7\n");
writeFileSync(at("submission.csv"), "Id,Cover_Type\n3,7\n2,1\n1,1.0\n");
writeFileSync(at("Half.CSV"), "Id,Cover_Type\n3,7\n2,1.5\n1,1\n");
writeFileSync(at("submission.txt"), "Id,Cover_Type\n3,7\n2,1\n1,1\n");
mkdirSync(at("own"));
writeFileSync(
  at("own/task.yaml"),
  "name: own\ngrader: { metric: MAE, idColumn: Id, targetColumns: [Cover_Type], direction: Lower }\n",
);

test("the command grades one submission", () => {
  const given = ["--task", task, "--answers", at("answers.csv"), "--submission", at("submission.csv")];
  const plain = grade(...given);
  assert.deepEqual([plain.status, plain.stderr], [0, ""]);
  assert.equal(plain.stdout, "score 0.66667 (0.6666666666666666)\nno medal, not above the median\n");
  assert.deepEqual(JSON.parse(grade(...given, "--json").stdout), {
    ...{ valid: true, score: 0.66667, scoreRaw: 2 / 3, code: "valid", message: "valid" },
    rank: { goldMedal: false, silverMedal: false, bronzeMedal: false, anyMedal: false, aboveMedian: false },
  });
  const own = grade("--task", at("own"), "--answers", at("answers.csv"), "--submission", at("submission.csv"));
  assert.equal(own.stdout, "score 0.3333333333333333\n");
});

test("a batch has a line for each submission, in order, with paths relative to the batch's file", () => {
  const lines = ["submission.csv", "Half.CSV", "submission.txt", "none.csv", "own"]
    .map((submission) => JSON.stringify({ task, answers: "answers.csv", submission }))
    .concat("", JSON.stringify({ task, answers: "none.csv", submission: "submission.csv" }));
  writeFileSync(at("batch.jsonl"), lines.join("\n"));
  const { status, stdout, stderr } = grade("--batch", at("batch.jsonl"));
  assert.deepEqual([status, stderr], [0, ""]);
  const answers = stdout.trimEnd().split("\n");
  assert.equal(answers[0], `{"valid":true,"score":0.66667,"scoreRaw":${2 / 3},"code":"valid","message":"valid"}`);
  assert.deepEqual(JSON.parse(answers[1]!), {
    ...{ valid: false, score: null, scoreRaw: null, code: "notInteger" },
    message: "Cover_Type in row 2 is 1.5; labels are whole numbers",
  });
  assert.deepEqual(
    answers.slice(2).map((line) => JSON.parse(line).code),
    ["noSubmission", "noSubmission", "noSubmission", "answersUnusable"],
  );
});

test("bad input is refused in one line that says what to give", () => {
  writeFileSync(at("no-json.jsonl"), '{"task":"leaf-classification"}\n');
  writeFileSync(at("no-task.jsonl"), JSON.stringify({ task: "gold", answers: "a", submission: "b" }));
  const answers = ["--answers", at("answers.csv")];
  const cases: [string[], RegExp][] = [
    [[], /--task is missing; give/],
    [
      ["--task", "gold", ...answers, "--submission", "a.csv"],
      /--task gold: no folder .* and none of .*leaf-class.*wage/,
    ],
    [["--task", task, ...answers], /--submission is missing/],
    [["--task", task, "--answers", at("nothing.csv"), "--submission", "a.csv"], /--answers .*: there is no such file/],
    [
      ["--task", task, ...answers, "--submission", at("nope.csv")],
      /^--submission .*nope.csv: there is no such file; check/,
    ],
    [
      ["--task", task, "--submission", at("nope.csv")],
      /^--submission .*nope.csv: there is no such file; check the path\n$/,
    ],
    [["--batch", at("nothing.jsonl")], /cannot read .*nothing.jsonl: there is no such file/],
    [["--batch", at("no-json.jsonl")], /no-json.jsonl:1: give an object with the texts task, answers and submission/],
    [["--batch", at("no-task.jsonl")], /--task gold/],
    [["--batch", at("batch.jsonl"), ...answers], /--answers does not go with --batch/],
  ];
  for (const [options, message] of cases) {
    const { status, stdout, stderr } = grade(...options);
    assert.deepEqual([status, stdout], [2, ""], stderr);
    assert.match(stderr, message);
    assert.equal(stderr.trimEnd().split("\n").length, 1);
  }
});

test("an unknown option is refused, and the nearest one named", () => {
  const { status, stderr } = grade("--tusk", "x");
  assert.deepEqual([status, stderr], [2, "error: unknown option '--tusk'\n(Did you mean --task?)\n"]);
});

test("the command computes the reward of an execution in a task folder", () => {
  const directory = writeTaskFolder(at("folder"));
  const submission = at("execution.csv");
  writeFileSync(submission, "id,y\n0,1\n1,4\n");
  const reward = (...options: string[]) =>
    JSON.parse(grade("--task", directory, "--submission", submission, ...options).stdout);
  assert.deepEqual([reward().reward, reward().score], [0.9, 1]);
  const markers = ["--inserted", "loaded data,defined model", "--seen", "loaded data,made up"];
  assert.deepEqual(reward("--outcome", "timedOut", ...markers).reward, -9.9);
  assert.equal(reward("--outcome", "lost").reward, null);
  const wrong = grade("--task", at("none"));
  assert.deepEqual([wrong.status, wrong.stdout], [2, ""]);
  assert.match(wrong.stderr, /^.*no task folder.*\n$/);
  assert.equal(grade("--task", directory, "--outcome", "won").status, 2);
  cpSync(submission, join(directory, "prepared/private/answers.csv"));
  assert.equal(reward().score, 0);
});
