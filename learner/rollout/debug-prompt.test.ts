import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../engine/index.ts";
import { debugMessages, debugPrompt } from "./debug-prompt.ts";
import type { PromptTask } from "./prompt-task.ts";

const task: PromptTask = {
  name: "t",
  statement: "Predict the price.",
  description: "Long background.\n\nMore of it.",
  packages: ["numpy"],
  ...{ metric: { name: "MAE", direction: "Lower" as const }, columns: ["a", "b"], files: ["train.csv"] },
  ...{ snippet: [{ file: "train.csv", head: "a,b", records: ["1,2", "3,4"] }], submissionFormat: ["id,y", "0,1"] },
};
const failed = {
  ...{ plan: "A plan.", program: "import nothing\n", failure: "ModuleNotFoundError in line 1" },
  output: "Traceback (most recent call last):\nModuleNotFoundError: No module named 'nothing'\n",
};
const encode = (messages: Message[]) => Int32Array.from(Buffer.from(messages.map(({ content }) => content).join("|")));

test("a debug prompt has the task, the program, the failure and the end of its output", () => {
  const [system, user] = debugMessages(task, failed, "Paper", 1024);
  assert.match(system!.content, /You are given a machine learning task/);
  const parts = [
    ...[
      /it failed. Find the reason and mend/,
      /Predict the price\./,
      /metric|evaluated on MAE/,
      /Long background/,
      /1,2/,
    ],
    ...[
      /```python\nimport nothing\n```/,
      /It failed: ModuleNotFoundError in line 1/,
      /No module named 'nothing'\n```$/,
    ],
  ];
  let at = 0;
  for (const part of parts) {
    const found = user!.content.slice(at).search(part);
    assert.ok(found >= 0, `${part} after ${at}`);
    at += found;
  }
  const [, short] = debugMessages(task, failed, "Short", 1024);
  assert.equal(
    short!.content,
    "Predict the price.\nColumns: a, b.\nMetric: MAE, lower is better.\nMend this solution.\nA plan.\n```python\n" +
      "import nothing\n```\nFailure: ModuleNotFoundError in line 1\nOutput:\nTraceback (most recent call last):\n" +
      "ModuleNotFoundError: No module named 'nothing'",
  );
  const silent = debugMessages(undefined, { ...failed, output: "" }, "Paper", 1024)[1]!.content;
  assert.match(silent, /Note:\n\nPrevious solution:[\s\S]*It failed: ModuleNotFoundError in line 1$/);
});

test("a long debug prompt loses output, then parts of the task, then the task, but no part of the program", () => {
  const long = { ...failed, output: "0123456\n".repeat(100) };
  const made = (maxPromptTokens: number) =>
    debugPrompt(task, long, { style: "Paper", encode, maxPromptTokens, outputTailBytes: 1024 });
  const size = (shown: PromptTask | undefined, bytes: number) =>
    encode(debugMessages(shown, long, "Paper", bytes)).length;
  const whole = made(size(task, 1024))!;
  assert.deepEqual([whole.kind, whole.cut], ["debug", []]);
  const cut = made(size(task, 1024) - 1)!;
  assert.equal(cut.cut.length, 1);
  assert.match(cut.cut[0]!, /description|record/);
  assert.ok(cut.tokens.length < size(task, 1024));
  const bare = made(size(undefined, 0))!;
  assert.deepEqual(bare.cut.at(-1), "task");
  assert.match(bare.messages[1]!.content, /import nothing/);
  assert.equal(made(size(undefined, 0) - 1), undefined);
});
