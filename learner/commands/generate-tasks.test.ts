/** `longrun task generate` for real: tables, baselines in the programs' Python environment, checks. */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ensurePythonEnvironment } from "../../actor/python-env.ts";
import { parseTask, parseTrainingRun } from "../../crds/trainingrun.ts";
import { readAnswers } from "../grading/grade.ts";
import { metrics } from "../grading/metrics.ts";
import { estimateChat } from "../rollout/estimate-tokens.ts";
import { openTask } from "../tasks/task.ts";
import { checkTask } from "./check.ts";
import { generateTasks } from "./generate-tasks.ts";
import { judge } from "./generated-scores.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-generate-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const COUNT = Object.keys(metrics).length;
const LEAKS = 3;
const limits = { style: "Paper", maxPromptTokens: 1024, encode: estimateChat } as const;
let python: string;
let said: string[];
const out = join(folder, "micro");

async function generate(name: string, change: Partial<Parameters<typeof generateTasks>[0]> = {}): Promise<string[]> {
  const lines: string[] = [];
  const options = { out: join(folder, name), count: COUNT, seed: 3, leaks: LEAKS, python, limits, rows: 3 };
  await generateTasks({ ...options, say: (line) => void lines.push(line), ...change });
  return lines;
}
before(async () => {
  python = (await ensurePythonEnvironment()).python;
  said = await generate("micro");
});

const names = () => readdirSync(out).filter((name) => existsSync(join(out, name, "task.yaml")));
const filesOf = (directory: string) =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(directory.length))
    .sort();

test("every metric has a task, every task passes the check, and wanted leaks alone are found", () => {
  const found = names().map((name) => checkTask(join(out, name), { rows: 3, limits, exact: false }));
  assert.equal(found.length, COUNT);
  assert.deepEqual(new Set(found.map(({ grader }) => grader!.metric)), new Set(Object.keys(metrics)));
  const problems = found.flatMap(({ task, findings }) =>
    findings.map(({ severity, problem }) => `${severity} ${task}: ${problem}`),
  );
  // The sample submission of amounts is 0 throughout, which may be far from every label.
  const others = problems.filter((problem) => !/: sample submission \(score \S+\)$/.test(problem));
  assert.equal(others.length, LEAKS, problems.join("\n"));
  for (const problem of others)
    assert.match(problem, /^warning .*reference is one-to-one with the label .* gives the label away/);
  for (const { prompt, answers } of found) {
    assert.deepEqual(prompt!.cut, [], "the whole prompt fits");
    assert.ok(answers!.rows >= 100 && answers!.rows <= 2500);
  }
});

test("the tables have interactions, imbalance, texts, dates and missing values", () => {
  const trains = names().map((name) => readFileSync(join(out, name, "prepared/public/train.csv"), "utf8"));
  const have = (pattern: RegExp) => trains.filter((text) => pattern.test(text)).length;
  assert.ok(have(/,202[34]-\d\d-\d\d/) >= 3, "dates");
  assert.ok(have(/,,/) >= 3, "missing values");
  assert.ok(have(/,(\w+ ){3,}\w+(,|\n)/) >= 3, "texts");
});

test("a reward of 0 is the constant's score, of 1 the known answer's; flagged submissions earn no more than 0", () => {
  for (const name of names()) {
    const { guardedRewardCap, grader } = parseTask(readFileSync(join(out, name, "task.yaml"), "utf8"), name);
    const { scores, licence, drawn } = JSON.parse(readFileSync(join(out, name, "provenance.json"), "utf8"));
    assert.equal(guardedRewardCap, 0);
    assert.deepEqual(grader!.rewardRange, { worst: scores.constant, best: scores.known });
    assert.equal(licence, "CC0-1.0");
    assert.ok(drawn.rows >= 200 && drawn.rows <= 5000);
    const place = (score: number) => (score - scores.constant) / (scores.known - scores.constant);
    const best = Math.max(place(scores.linear), place(scores.boosted));
    assert.ok(best > 0 && best <= 1, `${name}: ${best}`);
  }
});

test("the same seed gives the same bytes, another seed other tasks", async () => {
  const few = { count: 2, leaks: 1 };
  const [one, again, other] = ["one", "again", "other"].map((name) => join(folder, name));
  await generate("one", few);
  await generate("again", few);
  assert.deepEqual(filesOf(again!), filesOf(one!));
  for (const file of filesOf(one!))
    assert.equal(
      readFileSync(join(again!, file), "utf8").replaceAll("again/", "one/"),
      readFileSync(join(one!, file), "utf8"),
      file,
    );
  await generate("other", { count: 1, leaks: 0, seed: 4 });
  assert.notDeepEqual(filesOf(other!)[1], filesOf(one!)[1]);
  const mode = statSync(join(out, names()[0]!, "prepared/private")).mode;
  assert.equal(mode & 0o077, 0, "no other user reads the answers");
});

test("the manifests are valid TrainingRuns of at most 16 tasks", () => {
  const runs = ["trainingrun-1.yaml", "trainingrun-2.yaml"].map((file) =>
    parseTrainingRun(readFileSync(join(out, file), "utf8"), file),
  );
  assert.deepEqual(runs.flatMap(({ spec }) => spec.tasks.map(({ name }) => name)).sort(), names());
  for (const { spec } of runs)
    for (const { publicData } of spec.tasks) assert.ok(existsSync(join(out, publicData!.path!, "train.csv")));
  assert.match(
    said.at(-2)!,
    new RegExp(`^${COUNT} tasks of \\d+ drawn ones; the slowest baseline takes \\d\\.\\d\\d s`),
  );
});

test("a task is refused whose baselines do not differ by more than the noise, or beat the known answer", () => {
  const name = names().find(
    (it) => parseTask(readFileSync(join(out, it, "task.yaml"), "utf8"), it).grader!.metric === "RMSE",
  )!;
  const copy = join(folder, "copy");
  cpSync(join(out, name), copy, { recursive: true });
  const task = openTask(copy);
  const text = readFileSync(task.answersPath, "utf8");
  const answers = readAnswers(Buffer.from(text), task.grader);
  const [header, ...lines] = text.trimEnd().split("\n");
  /** The answers, with an error that has the sign of a row's last digit. */
  const off = (error: number) =>
    Buffer.from(
      `${header}\n${lines
        .map((line) => {
          const [id, y] = line.split(",");
          return `${id},${Number(y) + (Number(id) % 2 ? error : -error * 1.1)}`;
        })
        .join("\n")}\n`,
    );
  const submissions = { constant: off(400), linear: off(200), boosted: off(100), known: off(50) };
  assert.equal(judge(task, answers, submissions).fault, undefined);
  assert.match(
    judge(task, answers, { ...submissions, boosted: off(200) }).fault!,
    /^linear and boosted differ by 0\.0 times the noise$/,
  );
  assert.match(
    judge(task, answers, { ...submissions, known: off(101) }).fault!,
    /^boosted is better than the known answer$/,
  );
  assert.match(
    judge(task, answers, { ...submissions, constant: off(20) }).fault!,
    /^no baseline is better than a constant$/,
  );
  assert.match(
    judge(task, answers, { ...submissions, boosted: Buffer.from(text) }).fault!,
    /^boosted is flagged: perfect$/,
  );
});

test("bad input is refused in a line with the remedy", async () => {
  await assert.rejects(generate("micro"), /^TaskError: --out \S+micro: the folder is not empty; choose another one$/);
  await assert.rejects(generate("x", { leaks: COUNT + 1 }), /--leaks is 22, but --count is 21; give at most as many$/);
  await assert.rejects(generate("x", { leaks: COUNT }), /--leaks is 21, but the label of 1 of 21 .*; give at most 20$/);
  writeFileSync(join(folder, "file"), "");
  await assert.rejects(generate("file"), /--out \S+file: .*check the path$/);
  const broken = join(folder, "python");
  writeFileSync(broken, "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'sklearn'\" >&2\nexit 1\n", {
    mode: 0o755,
  });
  await assert.rejects(
    generate("y", { python: broken }),
    /No module named 'sklearn'; give a Python with numpy, pandas and scikit-learn \(--python\)$/,
  );
  await assert.rejects(
    generate("z", { python: join(folder, "none") }),
    /cannot run the baselines: spawn .* ENOENT; give a Python/,
  );
});
