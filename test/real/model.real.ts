/**
 * A real pretrained model, SmolLM2-135M-Instruct in bfloat16 (model.ts), from its file to a served answer: log-probs and greedy text beside
 * transformers (make_reference.py), supervised training on programs, a run with a warm start, and `longrun serve` asked by OpenAI's client.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import OpenAI from "openai";
import {
  FROZEN,
  localEngine,
  logProbsOf,
  MappedWeights,
  readEosIds,
  readTokenizer,
} from "../../learner/engine/index.ts";
import { openStore } from "../../learner/store/store.ts";
import { findRealModel, missingRealModel } from "./model.ts";
import reference from "./reference.json" with { type: "json" };

const found = findRealModel();
const skip = found === undefined ? missingRealModel() : false;
const model = found ?? "";
const home = mkdtempSync(join(tmpdir(), "longrun-real-"));
after(() => rmSync(home, { recursive: true, force: true }));
const CLI = join(import.meta.dirname, "../../controller/cli.ts");
/** Largest difference between log-probs and transformers', nats. Seen: 5.5e-5. */
const LOG_PROB_DIFFERENCE = 2e-4;
const [PROGRAMS, RANK] = [40, 8];

/** Runs longrun to its end. @returns what it printed */
async function longrun(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [CLI, ...args], { cwd: home, stdio: ["ignore", "pipe", "pipe"] });
  const said = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (text: string) => {
      said[name] += text;
    });
  const [status] = (await once(child, "close")) as [number];
  assert.equal(status, 0, `${args.join(" ")}: ${said.stdout.slice(-2000)}${said.stderr.slice(-4000)}`);
  return said;
}

const linesOf = (file: string) =>
  readFileSync(join(home, file), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

test("log-probs, chats and greedy text equal transformers'", { skip }, async () => {
  const tokenizer = readTokenizer(model);
  // as `longrun serve` opens it: generation reads float32 copies of the bfloat16 matrices
  assert.ok(new MappedWeights(model).tensors.every(({ dtype }) => dtype === "BF16"));
  const engine = localEngine({ model, threads: 0, adapter: FROZEN, widens: true });
  const sequences = reference.map(({ prompt, response }) => Int32Array.from([...prompt, ...response]));
  for (const [i, logProbs] of (await logProbsOf(engine, model, sequences)).entries()) {
    const expected = reference[i]!.logProbs;
    assert.equal(logProbs.length, expected.length);
    const difference = Math.max(...logProbs.map((logProb, t) => Math.abs(logProb - expected[t]!)));
    assert.ok(difference < LOG_PROB_DIFFERENCE, `chat ${i}: log-probs differ by ${difference} nats`);
  }
  for (const { messages, prompt, text, response } of reference) {
    assert.deepEqual([...tokenizer.encodeChat(messages as Parameters<typeof tokenizer.encodeChat>[0])], prompt);
    assert.equal(tokenizer.decode(Int32Array.from(response)), text);
    const how = { seeds: [0], temperature: 0, topP: 1, maxNewTokens: response.length };
    const [answer] = await engine.generate([Int32Array.from(prompt)], { ...how, eosIds: readEosIds(model) });
    assert.deepEqual([...answer!.response], response);
  }
  await engine.close();
});

const CORPUS = ["--mistake-share", "0", "--improve-share", "0", "--seed", "3"];

test("longrun sft teaches it programs", { skip }, async () => {
  await longrun(
    "pretrain",
    "--export-corpus",
    "corpus.jsonl",
    "--texts",
    String(PROGRAMS),
    ...CORPUS,
    "--tasks",
    "movie,wage",
  );
  assert.equal(linesOf("corpus.jsonl").length, PROGRAMS);
  const how = [
    "--rank",
    String(RANK),
    "--epochs",
    "1",
    "--batch-size",
    "8",
    "--learning-rate",
    "1e-3",
    "--held-out",
    "0.1",
  ];
  const sft = ["sft", "--model", model, "--data", "corpus.jsonl", "--out", "adapter", ...how];
  const { stdout, stderr } = await longrun(...sft, "--checkpoint-seconds", "1000");
  const rows = linesOf("adapter/sft.jsonl") as { kind: string; step: number; loss: number; accuracy: number }[];
  const [before, afterwards] = rows.filter(({ kind }) => kind === "heldOut");
  assert.ok(rows.filter(({ kind }) => kind === "step").length >= 4, stdout + stderr);
  assert.ok(
    before!.loss > 1.2 && afterwards!.loss < before!.loss - 0.15,
    `held-out loss ${before!.loss}, ${afterwards!.loss}`,
  );
  assert.ok(afterwards!.accuracy > before!.accuracy, `held-out accuracy ${before!.accuracy}, ${afterwards!.accuracy}`);
});

test("a run warm-starts on programs of other tasks, and then trains", { skip }, async () => {
  const lines = readFileSync(join(home, "corpus.jsonl"), "utf8").split("\n").slice(0, 8);
  writeFileSync(join(home, "warm.jsonl"), `${lines.join("\n")}\n`);
  const settings = [
    ...["model.maxPromptTokens=160", "model.maxResponseTokens=256", "model.generationBatchSize=4"],
    ...[
      `model.adaptation={type: LoRA, rank: ${RANK}}`,
      "warmStart={data: {path: warm.jsonl}, epochs: 1, batchSize: 4}",
    ],
    ...["prompts.style=Short", "prompts.improveProbability=0", "algorithm.batchSize=4", "algorithm.miniBatchSize=4"],
    ...["algorithm.microBatchSize=4", "algorithm.oversampling=1", "algorithm.baseline=BatchMean", "actors.max=1"],
    ...["stopping.iterations=2", "evaluation={before: false, after: false}"],
  ].flatMap((setting) => ["--set", setting]);
  await longrun("run", "--task", "diamonds", "--model", model, "--out", "run", ...settings);
  const store = openStore(join(home, "run/store.sqlite"), { readOnly: true });
  assert.deepEqual([store.samplesOf(1).length, store.samplesOf(2).length], [4, 4]);
  assert.equal(store.warmSteps().length, 2, "8 examples, of which one is held out");
  store.close();
});

test("longrun serve answers OpenAI's client as longrun generate does", { skip }, async () => {
  const { messages } = linesOf("corpus.jsonl")[0] as { messages: OpenAI.Chat.ChatCompletionMessageParam[] };
  const asked = messages.slice(0, -1);
  writeFileSync(join(home, "asked.jsonl"), `${JSON.stringify({ messages: asked })}\n`);
  const generate = ["generate", "--model", model, "--adapter", "adapter", "--prompts", "asked.jsonl"];
  const { stdout } = await longrun(...generate, "--temperature", "0", "--max-tokens", "40");
  const { text } = JSON.parse(stdout) as { text: string };
  const serve = ["serve", "--model", model, "--adapter", "adapter", "--port", "0", "--slots", "2", "--context", "512"];
  const child = spawn(process.execPath, [CLI, ...serve], { cwd: home, stdio: ["ignore", "pipe", "inherit"] });
  try {
    const [line] = (await once(createInterface(child.stdout), "line")) as [string];
    const baseURL = / at (http\S+\/v1):/.exec(line)![1]!;
    const client = new OpenAI({ baseURL, apiKey: "none" });
    const answer = await client.chat.completions.create({
      ...{ model: "adapter", messages: asked, temperature: 0, max_tokens: 40 },
    });
    assert.equal(answer.choices[0]!.message.content, text);
    assert.ok(text.trim().split(/\s+/).length > 10, text);
  } finally {
    child.kill("SIGTERM");
    await once(child, "exit");
  }
});
