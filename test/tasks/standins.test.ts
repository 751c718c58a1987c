/** Tests every one of the twelve MLE-bench tasks on synthetic stand-ins: grader, prompt and `longrun task`. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { checkTask } from "../../learner/commands/check.ts";
import { readTokenizer } from "../../learner/engine/model/folder.ts";
import { mleBenchTasks } from "../../learner/grading/mlebench-tasks.ts";
import { estimateChat } from "../../learner/rollout/estimate-tokens.ts";
import { type EncodeChat, type PromptLimits, scratchPrompt } from "../../learner/rollout/prompts.ts";
import { readPromptTask } from "../../learner/rollout/snippet.ts";
import { openTask } from "../../learner/tasks/task.ts";
import { PACKAGES } from "../../proto/packages.ts";
import { findTokenizer, missingTokenizer } from "../tokenizers.ts";
import { standIn, writeStandIn } from "./standins.ts";

const parent = mkdtempSync(join(tmpdir(), "standins-"));
after(() => rmSync(parent, { recursive: true }));
const ids = Object.keys(mleBenchTasks());
before(() => {
  for (const id of ids) writeStandIn(id, parent);
});

const tokenizers = findTokenizer("qwen2.5");
const limits = (encode: EncodeChat): PromptLimits => ({ style: "Paper", maxPromptTokens: 1024, encode });

/** Scores of the sample submissions; MLE-bench's samples have the same. */
const sampleScores: Record<string, number | undefined> = {
  "detecting-insults-in-social-commentary": 0.5,
  "random-acts-of-pizza": 0.5,
  "tweet-sentiment-extraction": 0,
  "tabular-playground-series-may-2022": 0.5,
  "us-patent-phrase-to-phrase-matching": undefined, // constant: Pearson has no number for it
  "plant-pathology-2020-fgvc7": 0.5,
  "leaf-classification": 4.59512, // log 99
  "lmsys-chatbot-arena": 1.09861, // log 3
};

for (const id of ids) {
  test(`${id}: task check accepts the stand-in`, () => {
    const found = checkTask(join(parent, id), { rows: 3, limits: limits(estimateChat), exact: false });
    assert.deepEqual(
      found.findings.filter(({ severity }) => severity === "error"),
      [],
    );
    const { mleBench } = openTask(join(parent, id));
    assert.equal(mleBench, mleBenchTasks()[id]);
    assert.ok(found.answers?.graded.valid);
    assert.equal(found.answers.graded.score, mleBench?.direction === "Higher" ? 1 : 0);
    if (id in sampleScores) assert.equal(found.sample?.graded.score, sampleScores[id]);
    else assert.ok(found.sample?.graded.valid);
    assert.equal(found.sample?.graded.reason.code, id.startsWith("us-patent") ? "undefinedScore" : "valid");
    assert.ok(found.prompt && found.prompt.tokens <= 1024);
    const warnings = {
      "random-acts-of-pizza": /giver_username_if_known/,
      "us-patent-phrase-to-phrase-matching": /constant/,
    };
    const expected = (warnings as Record<string, RegExp>)[id];
    assert.equal(found.findings.length, expected ? 1 : 0);
    if (expected) assert.match(found.findings[0]!.problem, expected);
  });

  test(`${id}: the prompt fits with Qwen2.5's tokenizer`, {
    skip: tokenizers ? false : missingTokenizer("qwen2.5"),
  }, () => {
    const encode: EncodeChat = (messages) => qwen().encodeChat(messages);
    const task = readPromptTask(openTask(join(parent, id)), 3);
    const prompt = scratchPrompt(task, limits(encode));
    assert.ok(prompt.tokens.length <= 1024 && prompt.tokens.length > 700, `${prompt.tokens.length} tokens`);
    const { content } = prompt.messages[1]!;
    assert.ok(content.includes(`- ${mleBenchTasks()[id]!.statement}\n`), "the statement is whole");
    for (const file of task.files) assert.ok(content.includes(`\`${file}\``), file);
    const packages = PACKAGES.Basic.map((name) => `\`${name}\``).join(", ");
    assert.ok(content.includes(`- You can use pre-installed packages such as: ${packages}.\n`), "packages are named");
    assert.match(content, /^Columns of \.\/input\/train\.(csv|json) /m);
    assert.match(content, /Data snippet:\n-> \.\/input\/train/);
    assert.ok(!content.includes("https://"));
    const again = scratchPrompt(readPromptTask(openTask(join(parent, id)), 3), limits(encode));
    assert.deepEqual(again.messages, prompt.messages);
    const estimated = estimateChat(prompt.messages).length / prompt.tokens.length;
    assert.ok(estimated > 0.9 && estimated < 1.4, `estimated ${estimated} times the tokens`);
  });
}

let loaded: ReturnType<typeof readTokenizer> | undefined;
const qwen = () => {
  loaded ??= readTokenizer(tokenizers!);
  return loaded;
};

for (const id of ids)
  test(`${id}: its TrainingRun is valid on a cluster`, () => {
    const path = join(import.meta.dirname, `../../manifests/tasks/${id}/trainingrun.yaml`);
    const { spec } = parseTrainingRun(readFileSync(path, "utf8"), path, [], { cluster: true });
    const claim = (part: string) => ({
      persistentVolumeClaim: { claimName: "mle-bench", subPath: `${id}/prepared/${part}` },
    });
    const [task, ...others] = spec.tasks;
    assert.equal(others.length, 0);
    assert.equal(task!.name, id);
    assert.deepEqual([task!.publicData, task!.privateData], [claim("public"), claim("private")]);
    assert.equal(spec.algorithm.batchSize, 128);
  });

test("A stand-in has the same bytes every time", () => {
  for (const id of ids) assert.deepEqual(standIn(id), standIn(id));
});

const broken: [string, string, (folder: string) => void, RegExp][] = [
  [
    "no answers",
    "leaf-classification",
    (d) => rmSync(join(d, "prepared/private/test.csv")),
    /has no test\.csv; prepare the task again/,
  ],
  [
    "no training set",
    "lmsys-chatbot-arena",
    (d) => rmSync(join(d, "prepared/public/train.csv")),
    /has no train\.csv; run mlebench prepare/,
  ],
  [
    "no images",
    "plant-pathology-2020-fgvc7",
    (d) => rmSync(join(d, "prepared/public/images"), { recursive: true }),
    /has no images\//,
  ],
  [
    "no description",
    "spooky-author-identification",
    (d) => rmSync(join(d, "prepared/public/description.md")),
    /no description\.md/,
  ],
  [
    "labels in the test set",
    "tabular-playground-series-may-2022",
    (d) => copyFileSync(join(d, "prepared/private/test.csv"), join(d, "prepared/public/test.csv")),
    /test\.csv has the column target.*\n.*public\/test\.csv is the same file as private\/test\.csv/,
  ],
  [
    "other ids",
    "learning-agency-lab-automated-essay-scoring-2",
    (d) => edit(join(d, "prepared/public/test.csv"), (text) => text.replace(/\n[0-9a-f]{7},/, "\nzzzzzzz,")),
    /essay_id of test\.csv and of sample_submission\.csv differ, first at/,
  ],
  [
    "a row less",
    "nomad2018-predict-transparent-conductors",
    (d) => edit(join(d, "prepared/public/test.csv"), (text) => text.replace(/\n[^\n]*\n$/, "\n")),
    /test\.csv has 39 rows, private\/test\.csv has 40/,
  ],
  [
    "an answer without a word",
    "tweet-sentiment-extraction",
    (d) =>
      edit(join(d, "prepared/private/test.csv"), (text) =>
        text.replace(/(\n[^\n]*),[^,\n]*,neutral\n/, "$1,,neutral\n"),
      ),
    /the grader refuses the answers themselves/,
  ],
  [
    "a sample of other rows",
    "us-patent-phrase-to-phrase-matching",
    (d) => edit(join(d, "prepared/public/sample_submission.csv"), (text) => text.replace(/\n[^\n]*\n$/, "\n")),
    /the grader refuses sample_submission\.csv: /,
  ],
];
function edit(path: string, change: (text: string) => string): void {
  const before = readFileSync(path, "utf8");
  writeFileSync(path, change(before));
  assert.notEqual(readFileSync(path, "utf8"), before);
}
for (const [name, id, change, expected] of broken)
  test(`task check reports ${name}`, () => {
    const folder = writeStandIn(id, join(parent, name.replaceAll(" ", "-")));
    change(folder);
    const { findings } = checkTask(folder, { rows: 3, limits: limits(estimateChat), exact: false });
    const said = findings.map(({ severity, problem, remedy }) => `${severity} ${problem}; ${remedy}`).join("\n");
    assert.match(said, /^error /m);
    assert.match(said, expected);
  });

const longrun = (...args: string[]) =>
  spawnSync(process.execPath, ["learner/commands/task-command.ts", ...args], {
    encoding: "utf8",
    cwd: join(import.meta.dirname, "../.."),
  });

test("longrun task takes a folder above and --task, copies without leaking files, and has the documented statuses", () => {
  const copy = join(parent, "copy", "random-acts-of-pizza");
  const dropped = longrun("drop", parent, "--task", "random-acts-of-pizza", "--out", copy);
  assert.equal(dropped.status, 0, dropped.stderr);
  const checked = longrun("check", copy, "--json");
  assert.equal(checked.status, 0, checked.stderr);
  assert.deepEqual(JSON.parse(checked.stdout).findings, []);
  const none = longrun("check", parent);
  assert.equal(none.status, 2);
  assert.match(none.stderr, /: name one of its tasks with --task: .*leaf-classification, .*random-acts-of-pizza/);
  const misspelt = longrun("check", parent, "--task", "leaf-clasification");
  assert.equal(misspelt.status, 2);
  assert.match(misspelt.stderr, /^--task leaf-clasification: \S+ has no such task; it has .*leaf-classification, /);
  const share = longrun(
    "init",
    join(parent, "new"),
    "--from",
    "a.csv",
    "--target",
    "y",
    "--metric",
    "MAE",
    "--test-share",
    "a",
  );
  assert.match(share.stderr, /^--test-share a: give a share between 0 and 1, for example 0\.3$/m);
  const tight = longrun("prompt", join(parent, "leaf-classification"), "--max-tokens", "100");
  assert.equal(tight.status, 2);
  assert.match(tight.stderr, /^task leaf-classification: its statement takes a prompt of \d+ tokens/);
});
