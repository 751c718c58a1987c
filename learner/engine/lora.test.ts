import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { writeAdapterFolder } from "../../test/fixtures/reference/write_adapter_folder.ts";
import { adapterOf } from "../engine-options.ts";
import { loraAdaptation } from "./adaptation.ts";
import {
  type Engine,
  FROZEN,
  type PolicySample,
  type PolicyStep,
  startEngine,
  type ValueSample,
  type ValueStep,
} from "./engine.ts";
import { localEngine } from "./local.ts";
import { logProbsOf } from "./log-probs.fixture.ts";
import { readAdapter, writeAdapter } from "./model/adapter-folder.ts";
import { mergeFolder } from "./model/convert.ts";
import { readConfig } from "./model/folder.ts";
import { adapterParameters, PROJECTIONS } from "./model/lora.ts";
import { readSafetensors } from "./model/safetensors.ts";
import { parameters } from "./model/weights.ts";
import { policyStepGraph, valueStepGraph } from "./steps.ts";
import { Trainer } from "./trainer.ts";

// models, adapters and numbers from PyTorch and peft, made by test/fixtures/reference/make_lora_reference.py

const FIXTURES = path.join(import.meta.dirname, "../../test/fixtures/lora");
const CASES = ["all", "some"];
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "lora-"));
after(() => fs.rmSync(scratch, { recursive: true }));

interface Reference {
  samples: Record<string, number[] & number>[];
  step: PolicyStep;
  valueStep: ValueStep;
  greedy: number[][];
}

function open(name: string) {
  const model = path.join(FIXTURES, name);
  const { samples, ...rest } = JSON.parse(fs.readFileSync(path.join(model, "batch.json"), "utf8")) as Reference;
  const batch = samples.map((sample) => {
    const fields = Object.entries(sample).map(([key, value]) => {
      if (key === "weight") return [key, value];
      return [key, key === "prompt" || key === "response" ? Int32Array.from(value) : Float32Array.from(value)];
    });
    return Object.fromEntries(fields) as unknown as PolicySample & ValueSample;
  });
  const adapter = readAdapter(path.join(model, "adapter"), readConfig(model));
  const options = { model, threads: 1, adapter: { ...adapter.lora, seed: 5 } };
  const tensors = readSafetensors(path.join(model, "reference.safetensors"));
  return { model, batch, adapter, options, tensors, ...rest };
}

/** Returns a trainer whose policy is the fixture's adapter. */
function adaptedTrainer(name: string, more = {}): Trainer {
  const { options, adapter } = open(name);
  const trainer = new Trainer({ ...options, ...more });
  for (const [part, data] of adapter.weights) trainer.policy.weights.set(part, data);
  return trainer;
}

const worst = (actual: ArrayLike<number>, expected: ArrayLike<number>): number => {
  assert.equal(actual.length, expected.length);
  return Array.from(expected).reduce((most, value, i) => Math.max(most, Math.abs(value - actual[i])), 0);
};

test("an engine with a new adapter computes what its base computes; A is uniform within 1/sqrt(in) and seeded", async () => {
  const { model, options, batch } = open("all");
  const [lora, full, other] = [
    new Trainer(options),
    new Trainer({ model, threads: 1 }),
    new Trainer({ ...options, adapter: { ...options.adapter, seed: 6 } }),
  ];
  const evaluated = await lora.evaluate(batch, { temperature: 1, values: false });
  const base = await full.evaluate(batch, { temperature: 1, values: false });
  for (const [i, { logProbs }] of base.entries()) {
    assert.ok(worst(evaluated[i].logProbs, logProbs) < 1e-5);
    assert.deepEqual(evaluated[i].referenceLogProbs, evaluated[i].logProbs);
  }
  const a = lora.policy.weights.get("model.layers.0.self_attn.q_proj.lora_A.weight").data as Float32Array;
  const largest = Math.max(...a.map(Math.abs));
  assert.ok(largest <= 0.25 && largest > 0.22, `${largest} of 1/sqrt(16)`);
  assert.ok(Math.abs(a.reduce((sum, x) => sum + x, 0) / a.length) < 0.08);
  assert.notEqual(await lora.digest(), await other.digest());
  for (const trainer of [lora, full, other]) await trainer.close();
});

test("no frozen weight has a gradient", () => {
  for (const name of CASES) {
    const { model, adapter } = open(name);
    const adaptation = loraAdaptation(model, adapter.lora, 1);
    const frozen = new Set(
      parameters(adaptation.config)
        .map(({ shape }) => shape.join())
        .filter((shape) => shape.includes(",")),
    );
    const names = adapterParameters(adaptation.config, adapter.lora).map(
      (parameter) => `gradient of ${parameter.name}`,
    );
    for (const graph of [policyStepGraph(adaptation), valueStepGraph(adaptation)]) {
      const made = graph.nodes.filter(({ type }) => type !== "Cast").flatMap((node) => node.outputs);
      assert.deepEqual(
        made.filter(({ shape }) => frozen.has(shape.join())),
        [],
      );
      const gradients = graph.outputs
        .map((output) => output.name)
        .filter((output) => output.startsWith("gradient of "));
      assert.deepEqual(
        gradients.filter((output) => !output.includes("score")),
        names,
      );
    }
  }
});

test("no division into micro-batches changes a gradient of adapters", async () => {
  for (const name of CASES) {
    const { batch, step, valueStep } = open(name);
    const still = { learningRate: 0 };
    const trainers = [1e6, 20].map((microBatchTokens) => adaptedTrainer(name, { microBatchTokens }));
    const gradients = async (trainer: Trainer, microBatchSize: number) => {
      await trainer.updatePolicy(batch, { ...step, ...still, microBatchSize });
      const policy = trainer.policy.gradient!.data.slice();
      await trainer.initializeCritic(-1);
      trainer.critic!.weights.set("score.weight", new Float32Array(16).fill(0.1));
      await trainer.updateCritic(batch, { ...valueStep, ...still, microBatchSize });
      return [...policy, ...trainer.critic!.gradient!.data];
    };
    const whole = await gradients(trainers[0], batch.length);
    const largest = Math.max(...whole.map(Math.abs));
    assert.ok(largest > 0.01);
    for (const [trainer, size] of [
      [0, 1],
      [0, 2],
      [0, 3],
      [1, 5],
    ])
      assert.ok(
        worst(await gradients(trainers[trainer], size), whole) <= 4e-6 * largest,
        `${name}: ${trainer}, ${size}`,
      );
    for (const trainer of trainers) await trainer.close();
  }
});

test("log-probs and greedy tokens equal peft's, with an adapter and after a merge", async () => {
  for (const name of CASES) {
    const { model, adapter, batch, tensors, greedy, options } = open(name);
    const sequences = batch.map(({ prompt, response }) => Int32Array.of(...prompt, ...response));
    const merged = path.join(scratch, `merged-${name}`);
    mergeFolder(model, path.join(model, "adapter"), merged, { dtype: "F32" });
    for (const evaluated of [
      await logProbsOf(model, sequences, { ...adapter.lora, seed: 0, folder: path.join(model, "adapter") }),
      await logProbsOf(merged, sequences),
    ])
      for (const [i, logProbs] of evaluated.entries())
        assert.ok(worst(logProbs, tensors.get(`whole.${i}`)!.data) <= 1e-4);
    const trainer = adaptedTrainer(name);
    const prompts = batch.map(({ prompt }) => prompt);
    const how = { seeds: prompts.map(() => 0), temperature: 0, topP: 1, maxNewTokens: 24 };
    const generated = await trainer.generate(prompts, how);
    assert.deepEqual(
      generated.map(({ response }) => [...response]),
      greedy,
    );
    const reference = await trainer.generate(prompts, { ...how, weights: "reference" });
    const untrained = new Trainer(options);
    assert.deepEqual(reference, await untrained.generate(prompts, how));
    assert.notDeepEqual(
      reference.map(({ response }) => [...response]),
      greedy,
    );
    for (const one of [trainer, untrained]) await one.close();
  }
});

test("the reference has no adapter and is computed on request alone; an adapter without targets changes nothing", async () => {
  const { model, adapter, batch } = open("all");
  const options = { model, threads: 1, adapter: { ...adapter.lora, seed: 0, folder: path.join(model, "adapter") } };
  const [adapted, frozen] = [localEngine(options), localEngine({ model, threads: 1, adapter: FROZEN })];
  const evaluated = await adapted.evaluate(batch, { temperature: 1, values: false });
  const policy = await adapted.evaluate(batch, { temperature: 1, values: false, reference: false });
  const bare = await frozen.evaluate(batch, { temperature: 1, values: false });
  for (const [i, { logProbs, referenceLogProbs }] of evaluated.entries()) {
    assert.deepEqual(policy[i]!.logProbs, logProbs);
    assert.ok(policy[i]!.referenceLogProbs.every((number) => number === 0));
    assert.deepEqual(bare[i]!.logProbs, referenceLogProbs);
    assert.deepEqual(bare[i]!.referenceLogProbs, referenceLogProbs);
    assert.ok(worst(logProbs, referenceLogProbs) > 1e-3);
  }
  for (const engine of [adapted, frozen]) await engine.close();
  const wrong = { ...options, adapter: { ...options.adapter, rank: 4 } };
  assert.throws(() => localEngine(wrong), { code: "checkpoint", message: /has rank 3, alpha 7.*the run has rank 4/ });
});

test("a run continues from a small checkpoint of its adapters bit for bit, in the engine's worker too", async () => {
  const { options, batch, step, valueStep } = open("all");
  const train = async (engine: Engine) => [
    await engine.updatePolicy(batch, { ...step, microBatchSize: 2 }),
    await engine.updateCritic(batch, { ...valueStep, microBatchSize: 2 }),
    await engine.evaluate(batch, { temperature: 0.7, values: true }),
  ];
  const directory = path.join(scratch, "checkpoint");
  const engine = await startEngine(options);
  await train(engine);
  const { digest } = await engine.save(directory);
  const next = await train(engine);
  const end = await engine.digest();
  assert.notEqual(end, digest);
  await engine.close();
  assert.deepEqual(fs.readdirSync(path.join(directory, "policy")).sort(), [
    "adapter_config.json",
    "adapter_model.safetensors",
  ]);

  const resumed = new Trainer({ ...options, adapter: { ...options.adapter, seed: 99 } });
  await resumed.load(directory);
  assert.equal(await resumed.digest(), digest);
  assert.deepEqual(await train(resumed), next);
  assert.equal(await resumed.digest(), end);
  await resumed.close();

  const other = new Trainer({ ...options, adapter: { ...options.adapter, rank: 4 } });
  await assert.rejects(other.load(directory), {
    code: "checkpoint",
    message: /has rank 3, alpha 7.*the run has rank 4/,
  });
});

test("peft computes the same log-probs with an adapter that the engine wrote", async () => {
  const { model, batch } = open("all");
  const config = readConfig(model);
  const folder = path.join(scratch, "written");
  writeAdapterFolder(folder);
  const file = fs.readFileSync(path.join(folder, "adapter_model.safetensors"));
  // made from this file by test/fixtures/reference/check_adapter_folder.py
  const kept = JSON.parse(fs.readFileSync(path.join(FIXTURES, "written.json"), "utf8"));
  assert.equal(createHash("sha256").update(file).digest("hex"), kept.sha256);
  const sequences = batch.map(({ prompt, response }) => [...prompt, ...response]);
  const evaluated = await logProbsOf(model, sequences, { ...readAdapter(folder, config).lora, seed: 0, folder });
  for (const [i, logProbs] of evaluated.entries()) assert.ok(worst(logProbs, kept.logProbs[i]) <= 1e-4);
});

test("a manifest's adaptation gives rank, alpha, targets and seed of the adapter", () => {
  const asked = (adaptation: Parameters<typeof adapterOf>[0]["model"]["adaptation"]) =>
    adapterOf({ model: { adaptation }, seed: 3 });
  assert.equal(asked({ type: "Full" }), undefined);
  assert.deepEqual(asked({ type: "LoRA", rank: 8 }), { rank: 8, alpha: 8, targets: PROJECTIONS, seed: 3 });
  const some = asked({ type: "LoRA", rank: 8, alpha: 16, targets: ["v_proj", "q_proj"] });
  assert.deepEqual(some, { rank: 8, alpha: 16, targets: ["q_proj", "v_proj"], seed: 3 });
});

test("adapters with unsupported fields are refused by field", () => {
  const { model, adapter } = open("some");
  const config = readConfig(model);
  const folder = path.join(scratch, "adapter");
  writeAdapter(folder, adapter, "base");
  assert.deepEqual(readAdapter(folder, config), adapter);
  const file = path.join(folder, "adapter_config.json");
  const good = JSON.parse(fs.readFileSync(file, "utf8"));
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ peft_type: "IA3" }, /adapter_config\.json: peft_type is "IA3"; supported is "LORA"/],
    [{ use_rslora: true }, /use_rslora is true; only plain LoRA/],
    [{ use_dora: true }, /use_dora is true; only plain LoRA/],
    [{ rank_pattern: { q_proj: 4 } }, /rank_pattern is .*only one rank/],
    [{ modules_to_save: ["lm_head"] }, /modules_to_save is \["lm_head"\]; leave it out/],
    [{ init_lora_weights: "pissa" }, /init_lora_weights is "pissa"/],
    [{ target_modules: ["embed_tokens"] }, /target_modules is \["embed_tokens"\]; supported are q_proj/],
    [{ r: 0 }, /r is 0; expected a whole number/],
    [{ lora_alpha: "8" }, /lora_alpha is "8"; expected a number/],
    [{ r: 3 }, /v_proj\.lora_A\.weight is \[2,16\], but the model and adapter_config\.json ask for \[3,16\]/],
    [{ target_modules: ["v_proj"] }, /unknown tensor base_model\.model\.model\.layers\.0\.mlp\.down_proj/],
    [{ target_modules: ["v_proj", "q_proj"] }, /q_proj\.lora_A\.weight is missing/],
  ];
  for (const [change, message] of cases) {
    fs.writeFileSync(file, JSON.stringify({ ...good, ...change }));
    assert.throws(() => readAdapter(folder, config), { name: "ModelError", message });
  }
});

test("commands take an adapter and merge it", async () => {
  const { model, batch, tensors, greedy } = open("all");
  const run = (file: string, args: string[]) =>
    promisify(execFile)(process.execPath, [path.join(import.meta.dirname, "../commands", file), ...args]);
  const lines = path.join(scratch, "lines.jsonl");
  const out = path.join(scratch, "merged-by-command");
  const adapter = ["--adapter", path.join(model, "adapter")];
  fs.writeFileSync(lines, `${JSON.stringify({ tokens: [...batch[0].prompt, ...batch[0].response] })}\n`);
  const scored = JSON.parse(
    (await run("logprobs-command.ts", ["--model", model, "--tokens", lines, ...adapter])).stdout,
  );
  assert.ok(worst(scored.logProbs, tensors.get("whole.0")!.data) <= 1e-4);
  await run("model-command.ts", ["merge", "--model", model, "--out", out, ...adapter]);
  const whole = path.join(scratch, "merged-by-function");
  mergeFolder(model, path.join(model, "adapter"), whole, {});
  const bytes = (folder: string) => fs.readFileSync(path.join(folder, "model.safetensors"));
  assert.deepEqual(bytes(out), bytes(whole));
  const inParts = path.join(scratch, "merged-in-parts");
  mergeFolder(model, path.join(model, "adapter"), inParts, { partNumbers: 100 });
  assert.deepEqual(bytes(inParts), bytes(whole));
  fs.writeFileSync(lines, `${JSON.stringify({ tokens: [...batch[0].prompt] })}\n`);
  const greedily = ["--model", model, "--prompts", lines, "--temperature", "0", "--max-tokens", "24", ...adapter];
  assert.deepEqual(JSON.parse((await run("generate-command.ts", greedily)).stdout).tokens, greedy[0]);
  await assert.rejects(run("logprobs-command.ts", ["--model", model, "--tokens", lines, "--adapter", scratch]), {
    code: 2,
    stderr: /adapter_config\.json/,
  });
});
