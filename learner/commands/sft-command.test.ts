import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { defaultCorpus, makeCorpus } from "../pretrain/corpus.ts";
import { exampleLine } from "../sft/examples.ts";

const directory = mkdtempSync(join(tmpdir(), "sft-"));
after(() => rmSync(directory, { recursive: true }));
const main = fileURLToPath(new URL("sft-command.ts", import.meta.url));
const data = join(directory, "data.jsonl");
const texts = makeCorpus({ ...defaultCorpus, seed: 3, texts: 30, mistakeShare: 0 });
const lines = texts.map(({ messages, response }) => exampleLine({ prompt: messages, response }));
writeFileSync(data, lines.join(""));

const COMMON = ["--model", "quickstart", "--data", data, "--threads", "1", "--device", "cpu"];
const sft = (...args: string[]) => spawnSync(process.execPath, [main, ...args], { encoding: "utf8" });
const weights = (folder: string, file = "model.safetensors") =>
  createHash("sha256")
    .update(readFileSync(join(folder, file)))
    .digest("hex");
const linesOf = (folder: string) =>
  readFileSync(join(folder, "sft.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => {
      const { seconds, ...rest } = JSON.parse(line);
      return rest;
    });

test("every weight: the loss falls, the folder is a model, and the same command then only says so", () => {
  const out = join(directory, "full");
  const args = [...COMMON, "--out", out, "--epochs", "3", "--learning-rate", "1e-3", "--max-tokens", "180"];
  const first = sft(...args);
  assert.equal(first.status, 0, first.stderr);
  assert.match(first.stdout, /left out: \d+ of more than 180 tokens; the longest has \d+\n/);
  assert.match(first.stdout, /memory plan: \d+ MB/);
  assert.match(first.stdout, /after 0 steps: held-out loss 0\.\d+, accuracy \d+\.\d %/);
  const steps = linesOf(out).filter(({ kind }) => kind === "step");
  assert.ok(steps.length >= 6);
  assert.ok(steps.at(-1).loss < 0.8 * steps[0].loss, `${steps[0].loss} to ${steps.at(-1).loss}`);
  assert.ok(!existsSync(join(out, "checkpoints")));
  const before = weights(out);
  const again = sft(...args);
  assert.equal(again.status, 0, again.stderr);
  assert.equal(weights(out), before);
  const measured = sft("--model", out, "--data", data, "--plan", "--json");
  assert.equal(measured.status, 0, measured.stderr);

  const other = sft(...args.map((arg) => (arg === "1e-3" ? "1e-4" : arg)));
  assert.equal(other.status, 2);
  assert.equal(
    other.stderr,
    `${out} was begun with learningRate 0.001, now it is 0.0001; give what it was, or another --out\n`,
  );
});

test("Ctrl-C and kill -9 lose the step at most: the same command ends with the same adapter and lines", async () => {
  const args = (out: string) => [...COMMON, "--out", out, "--rank", "4", "--epochs", "4", "--checkpoint-seconds", "0"];
  const [whole, broken] = [join(directory, "whole"), join(directory, "broken")];
  assert.equal(sft(...args(whole)).status, 0);

  for (const [signal, step, status] of [
    ["SIGINT", 2, 130],
    ["SIGKILL", 5, null],
    ["SIGTERM", 8, 130],
  ] as const) {
    const child = spawn(process.execPath, [main, ...args(broken), "--json"], { stdio: ["ignore", "pipe", "pipe"] });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    let shown = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      shown += text;
      if (shown.includes(`"step":${step},"epoch"`)) child.kill(signal);
    });
    const ended = await new Promise((resolve) => child.once("close", resolve));
    assert.equal(ended, status, stderr);
    if (signal !== "SIGKILL") assert.match(stderr, /stopped after step \d+; the same command goes on/);
    assert.ok(!existsSync(join(broken, "adapter_model.safetensors")));
    const [checkpoint] = readdirSync(join(broken, "checkpoints")).filter((name) => !name.endsWith(".partial"));
    assert.ok(Number(checkpoint) >= step - 1, `checkpoint ${checkpoint} after step ${step}`);
  }
  const last = sft(...args(broken));
  assert.equal(last.status, 0, last.stderr);
  assert.match(last.stderr, /going on after step \d+/);
  assert.equal(weights(broken, "adapter_model.safetensors"), weights(whole, "adapter_model.safetensors"));
  assert.deepEqual(linesOf(broken), linesOf(whole));
});

test("a folder of programs has the task's prompt", () => {
  const task = join(directory, "wage");
  mkdirSync(join(task, "prepared/public"), { recursive: true });
  mkdirSync(join(task, "prepared/private"));
  writeFileSync(
    join(task, "task.yaml"),
    "name: wage\ngrader: {metric: RMSE, direction: Lower, idColumn: id, targetColumns: [wage]}\n",
  );
  writeFileSync(join(task, "prepared/public/description.md"), "Predict the wage.\n");
  writeFileSync(join(task, "prepared/public/train.csv"), "id,age,wage\n1,30,10.5\n2,40,20.5\n");
  writeFileSync(join(task, "prepared/public/test.csv"), "id,age\n3,35\n");
  writeFileSync(join(task, "prepared/public/sample_submission.csv"), "id,wage\n3,0\n");
  writeFileSync(join(task, "prepared/private/answers.csv"), "id,wage\n3,15\n");
  const programs = join(directory, "programs");
  mkdirSync(programs);
  for (const i of [1, 2]) writeFileSync(join(programs, `p${i}.py`), `# Fit model ${i}.\nprint(${i})\n`);
  const args = ["--model", "quickstart", "--data", programs, "--plan", "--json", "--style", "Short", "--device", "cpu"];
  const found = sft(...args, "--task", task);
  assert.equal(found.status, 0, found.stderr);
  assert.equal(JSON.parse(found.stdout.split("\n")[0]!).training, 2);
  const without = sft(...args);
  assert.equal(without.status, 2);
  assert.equal(without.stderr, `--task is missing; name the task that the programs in ${programs} solve\n`);
  writeFileSync(join(programs, "empty.py"), "# nothing\n");
  const empty = sft(...args, "--task", task);
  assert.equal(empty.status, 2);
  assert.equal(
    empty.stderr,
    `${join(programs, "empty.py")}: as an answer it is refused: emptyCodeBlock; mend the program\n`,
  );
});

test("bad input is refused in one line", async (t) => {
  const bad = join(directory, "bad.jsonl");
  writeFileSync(bad, `${lines[0]}{"prompt": "a"}\n`);
  const other = join(directory, "other");
  mkdirSync(other);
  writeFileSync(join(other, "file"), "");
  const out = ["--out", join(directory, "refused")];
  const cases: [args: string[], message: string | RegExp][] = [
    [["--model", "quickstart", "--out", "x"], "--data is missing; give files, run folders or folders of programs"],
    [COMMON, "--out is missing; give a folder for the trained model"],
    [[...COMMON, ...out, "--epochs", "0"], "--epochs is 0; give a whole number of at least 1"],
    [[...COMMON, ...out, "--held-out", "1"], "--held-out is 1; give a number of at least 0 and below 1"],
    [[...COMMON, ...out, "--schedule", "Step"], "--schedule is Step; give Constant, Linear, Cosine"],
    [[...COMMON, ...out, "--alpha", "4"], "--alpha is of a new adapter; give --rank too"],
    [[...COMMON, ...out, "--rank", "2", "--targets", "q_proj,embed"], /^--targets has embed; known are q_proj,/],
    [
      [...COMMON, ...out, "--max-tokens", "20"],
      /^all 30 examples are longer than 20 tokens, the longest has \d+; raise/,
    ],
    [
      [...COMMON, "--out", other],
      `--out ${other}: the folder has other files; give a new folder, or one that longrun sft began`,
    ],
    [
      ["--model", "quickstart", "--data", bad, ...out],
      `${bad}, line 2: completion is missing; give messages, or prompt and completion`,
    ],
    [
      ["--model", "quickstart", "--data", "none.jsonl", ...out],
      "none.jsonl: there is no such file or folder; check --data",
    ],
    [
      ["--model", "quickstart", "--data", other, ...out],
      /^.*other: it has neither store.sqlite, as a run folder, nor programs/,
    ],
  ];
  for (const [args, message] of cases)
    await t.test(String(message).slice(0, 50), () => {
      const { status, stderr } = sft(...args);
      assert.equal(status, 2, stderr);
      const [line, ...more] = stderr.trimEnd().split("\n");
      assert.deepEqual(more, []);
      if (typeof message === "string") assert.equal(line, message);
      else assert.match(line!, message);
    });
  assert.ok(!existsSync(join(directory, "refused")), "nothing was made");
});
