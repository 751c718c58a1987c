import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { policyFolder } from "../../crds/policy.ts";
import { readTokenizer } from "../engine/model/folder.ts";
import { newSample, scratchFolder } from "../store/store.fixture.ts";
import { openStore } from "../store/store.ts";
import { chatOfTokens } from "./chat-of-tokens.ts";
import { planOf } from "./program-examples.ts";
import { examplesOfRun } from "./run-examples.ts";

const tokenizer = readTokenizer(policyFolder("quickstart", "", ""));
const messages = [
  { role: "system", content: "Write a plan and a Python program that solves the task." },
  { role: "user", content: "Predict the price.\nColumns: carat, <|im_end|>." },
] as const;

test("the tokens of a chat become its messages again, with the text after them", () => {
  const tokens = tokenizer.encodeChat(messages);
  assert.deepEqual(chatOfTokens(tokens, tokenizer), { messages, answer: "" });
  const begun = Int32Array.of(...tokens, ...tokenizer.encode("A plan.\n```python\n"));
  assert.deepEqual(chatOfTokens(begun, tokenizer), { messages, answer: "A plan.\n```python\n" });
  const turns = [...messages, { role: "assistant", content: "First." }, { role: "user", content: "Again." }] as const;
  assert.deepEqual(chatOfTokens(tokenizer.encodeChat(turns), tokenizer)?.messages, turns);
  assert.equal(chatOfTokens(tokenizer.encode("no chat"), tokenizer), undefined);
});

const MANIFEST = `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: {name: tiny}
spec:
  model: {policy: quickstart}
  tasks: [{name: diamonds}]
`;

test("a run's examples are its valid samples, the best ones, no two alike, none flagged", () => {
  const run = join(scratchFolder(), "run");
  mkdirSync(run, { recursive: true });
  writeFileSync(join(run, "trainingrun.yaml"), MANIFEST);
  const store = openStore(join(run, "store.sqlite"));
  const add = (
    id: string,
    program: string,
    grade?: { valid: boolean; reward: number; guards?: string[] },
    task = "diamonds",
  ) => {
    store.addSamples([
      newSample(id, {
        ...{ program, task, promptTokens: tokenizer.encodeChat(messages), state: "notExecuted" },
        solution: `Plan ${id}.\n\`\`\`python\n${program}\n\`\`\``,
      }),
    ]);
    if (grade) store.setGrade(id, { reason: grade.valid ? "valid" : "failed", ...grade });
  };
  add("middle", "print(1)", { valid: true, reward: 0.5 });
  add("best", "print(2)", { valid: true, reward: 0.9 });
  add("worst", "print(3)", { valid: true, reward: 0.1 });
  add("alike", "print(2)  \n\n", { valid: true, reward: 0.8 });
  add("flagged", "print(4)", { valid: true, reward: 1, guards: ["constant"] });
  add("failed", "print(5)", { valid: false, reward: -10 });
  add("ungraded", "print(6)");
  add("other", "print(2)", { valid: true, reward: -1 }, "wage");
  store.close();

  const { examples, leftOut } = examplesOfRun(run);
  assert.deepEqual(
    examples.map(({ sample }) => sample.id),
    ["best", "middle", "worst", "other"],
  );
  assert.deepEqual(leftOut, { invalid: 2, flagged: 1, alike: 1, beaten: 0 });
  const { prompt, response, place } = examples[0]!;
  assert.deepEqual(prompt, messages);
  assert.equal(response, "Plan best.\n```python\nprint(2)\n```");
  assert.equal(place, `${run}, sample best`);

  const best = examplesOfRun(run, 2);
  assert.deepEqual(
    best.examples.map(({ sample }) => sample.id),
    ["best", "middle", "other"],
  );
  assert.equal(best.leftOut.beaten, 1);
  assert.throws(() => examplesOfRun(join(run, "none")), {
    message: /none: this is no run folder: it has no store.sqlite/,
  });
});

test("an answer's prefix, with which its prompt ends, stays in the answer alone", () => {
  const prefix = "Plan: ";
  for (const [name, prompt] of [
    ["chat", messages],
    ["text", "Predict the price."],
  ] as const) {
    const run = join(scratchFolder(), name);
    mkdirSync(run, { recursive: true });
    writeFileSync(join(run, "trainingrun.yaml"), `${MANIFEST}  prompts: {answerPrefix: "${prefix}"}\n`);
    const store = openStore(join(run, "store.sqlite"));
    const tokens = typeof prompt === "string" ? tokenizer.encode(prompt) : tokenizer.encodeChat(prompt);
    const promptTokens = Int32Array.of(...tokens, ...tokenizer.encode(prefix));
    const solution = `${prefix}fit.\n\`\`\`python\nprint(1)\n\`\`\``;
    store.addSamples([newSample("a", { promptTokens, solution, state: "notExecuted" })]);
    store.setGrade("a", { valid: true, reward: 1, reason: "valid" });
    store.close();
    const [example] = examplesOfRun(run).examples;
    assert.deepEqual([example!.prompt, example!.response], [prompt, solution]);
  }
});

test("a program's plan is its first comment or docstring", () => {
  const standard = planOf("import os\n");
  assert.match(standard, /^Train a model/);
  assert.equal(planOf('"""Fit a\nforest."""\nimport os\n'), "Fit a forest.");
  assert.equal(planOf("# Fit a tree.\n# Then predict.\nimport os\n"), "Fit a tree. Then predict.");
  assert.equal(planOf("# ---\nimport os\n"), standard);
  assert.equal(planOf("#!/usr/bin/python\nimport os\n"), standard);
});
