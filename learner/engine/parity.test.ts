import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { adamwScalars, adamwStep, clipScale, newMoments, sumOfSquares } from "./adamw.ts";
import type { Adam, PolicySample, PolicyStep, Step, ValueSample, ValueStep } from "./engine.ts";
import { Parameters } from "./graph/parameters.ts";
import { readAdapter } from "./model/adapter-folder.ts";
import { readConfig } from "./model/folder.ts";
import { readSafetensors } from "./model/safetensors.ts";
import { Trainer } from "./trainer.ts";

// numbers from PyTorch, made by test/fixtures/reference/make_ppo_reference.py and, with peft's adapters, make_lora_reference.py

const FIXTURES = path.join(import.meta.dirname, "../../test/fixtures");
const CASES = ["ppo/tied", "ppo/untied", "ppo/kl", "ppo/qwen3", "ppo/llama", "lora/all", "lora/some"];
const WORST_RELATIVE_ERROR = 1e-4;
/** Absolute error of a weight after one optimiser step. */
const WORST_STEP_ERROR = 1e-6;
/** Absolute error of each loss of 20 steps. */
const WORST_LOSS_ERROR = 1e-3;

interface Reference {
  samples: Record<string, number[] & number>[];
  step: PolicyStep;
  valueStep: ValueStep;
  results: { loss: number; gradientNorm: number; valueLoss: number; valueGradientNorm: number };
}

function open(name: string) {
  const folder = path.join(FIXTURES, name);
  const { samples, ...rest } = JSON.parse(fs.readFileSync(path.join(folder, "batch.json"), "utf8")) as Reference;
  const batch = samples.map(
    (sample) =>
      Object.fromEntries(
        Object.entries(sample).map(([key, value]) => {
          if (key === "weight") return [key, value];
          return [key, key === "prompt" || key === "response" ? Int32Array.from(value) : Float32Array.from(value)];
        }),
      ) as unknown as PolicySample & ValueSample,
  );
  const tensors = readSafetensors(path.join(folder, "reference.safetensors"));
  const adapterFolder = path.join(folder, "adapter");
  const adapter = fs.existsSync(adapterFolder) ? readAdapter(adapterFolder, readConfig(folder)) : undefined;
  const trainer = new Trainer({ model: folder, threads: 1, ...(adapter && { adapter: { ...adapter.lora, seed: 1 } }) });
  for (const [part, data] of adapter?.weights ?? []) trainer.policy.weights.set(part, data);
  return { batch, tensors, trainer, ...rest };
}

function assertClose(actual: ArrayLike<number>, expected: ArrayLike<number>, what: string): void {
  assert.equal(actual.length, expected.length, what);
  let largest = 0;
  let difference = 0;
  for (let i = 0; i < expected.length; i++) {
    assert.ok(Number.isFinite(actual[i]), `${what}[${i}] is ${actual[i]}`);
    largest = Math.max(largest, Math.abs(expected[i]));
    difference = Math.max(difference, Math.abs(expected[i] - actual[i]));
  }
  assert.ok(difference <= WORST_RELATIVE_ERROR * largest, `${what}: differs by ${difference}, largest is ${largest}`);
}

function assertParameters(actual: Parameters, tensors: ReturnType<typeof readSafetensors>, prefix: string): void {
  for (const { name } of actual.shapes) {
    assertClose(actual.get(name).data as Float32Array, tensors.get(prefix + name)!.data, prefix + name);
  }
}

const concat = (parts: Float32Array[]) => parts.flatMap((part) => [...part]);

function readJson<T>(...file: string[]): T {
  return JSON.parse(fs.readFileSync(path.join(FIXTURES, ...file), "utf8"));
}

function worst(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  assert.equal(actual.length, expected.length);
  let difference = 0;
  for (let i = 0; i < expected.length; i++) {
    assert.ok(Number.isFinite(actual[i]), `[${i}] is ${actual[i]}`);
    difference = Math.max(difference, Math.abs(expected[i] - actual[i]));
  }
  return difference;
}

async function withCritic(trainer: Trainer, tensors: ReturnType<typeof readSafetensors>) {
  await trainer.initializeCritic(0);
  const critic = trainer.critic!;
  for (const part of ["score.weight", "score.bias"]) critic.weights.set(part, tensors.get(`critic.${part}`)!.data);
  return critic;
}

for (const name of CASES) {
  test(`${name} has PyTorch's losses, gradients and steps of policy and critic`, async () => {
    const { batch, tensors, trainer, step, valueStep, results } = open(name);
    const evaluated = await trainer.evaluate(batch, { temperature: step.temperature, values: false });
    assertClose(concat(evaluated.map((e) => e.logProbs)), tensors.get("logProbs")!.data, "logProbs");
    assertClose(concat(evaluated.map((e) => e.entropies)), tensors.get("entropies")!.data, "entropies");

    const reference = tensors.get("referenceLogProbs");
    if (reference) {
      assertClose(concat(evaluated.map((e) => e.referenceLogProbs)), reference.data, "reference log-probs");
      assert.notDeepEqual(evaluated[0].referenceLogProbs, evaluated[0].logProbs);
    }

    const policy = await trainer.updatePolicy(batch, { ...step, microBatchSize: 2 });
    assertClose([policy.loss, policy.gradientNorm], [results.loss, results.gradientNorm], "policy loss and norm");
    assertParameters(trainer.policy.gradient!, tensors, "policy.gradient.");
    assertParameters(trainer.policy.weights, tensors, "policy.after.");

    const critic = await withCritic(trainer, tensors);
    const withValues = await trainer.evaluate(batch, { temperature: 1, values: true });
    assertClose(concat(withValues.map((e) => e.values)), tensors.get("values")!.data, "values");
    const value = await trainer.updateCritic(batch, { ...valueStep, microBatchSize: 3 });
    assertClose(
      [value.loss, value.gradientNorm],
      [results.valueLoss, results.valueGradientNorm],
      "value loss and norm",
    );
    assertParameters(critic.gradient!, tensors, "critic.gradient.");
    assertParameters(critic.weights, tensors, "critic.after.");
    await trainer.close();
  });
}

for (const name of CASES) {
  test(`${name} with PyTorch's gradients has PyTorch's weights after AdamW`, async () => {
    const { tensors, trainer, step, valueStep, results } = open(name);
    const check = (role: "policy" | "critic", weights: Parameters, { adam, learningRate, gradientClip }: Step) => {
      const gradient = new Parameters(weights.shapes);
      for (const part of weights.shapes) gradient.set(part.name, tensors.get(`${role}.gradient.${part.name}`)!.data);
      const norm = Math.sqrt(sumOfSquares(gradient.data));
      const expected = role === "policy" ? results.gradientNorm : results.valueGradientNorm;
      assertClose([norm], [expected], "norm");
      const before = weights.copy();
      const scale = clipScale(norm, gradientClip);
      const scalars = adamwScalars(1, { ...adam, learningRate, scale });
      adamwStep({ weights: weights.data, gradient: gradient.data, ...newMoments(weights.data.length) }, scalars);
      for (const part of weights.shapes) {
        const after = tensors.get(`${role}.after.${part.name}`)!.data;
        const difference = worst(weights.get(part.name).data as Float32Array, after);
        assert.ok(difference <= WORST_STEP_ERROR, `${role} ${part.name}: ${difference}`);
        assert.ok(worst(before.get(part.name).data as Float32Array, after) > 100 * WORST_STEP_ERROR, "it did move");
      }
    };
    check("policy", trainer.policy.weights, step);
    // the critic starts from the trained policy
    for (const { name: part } of trainer.policy.weights.shapes)
      trainer.policy.weights.set(part, tensors.get(`policy.after.${part}`)!.data);
    check("critic", (await withCritic(trainer, tensors)).weights, valueStep);
    await trainer.close();
  });

  test(`${name} has PyTorch's losses in 20 steps`, async () => {
    const { batch, tensors, trainer, step, valueStep } = open(name);
    await withCritic(trainer, tensors);
    const reference = readJson<{ batches: number[][]; policyLosses: number[]; valueLosses: number[] }>(
      name,
      "steps.json",
    );
    const policyLosses: number[] = [];
    const valueLosses: number[] = [];
    for (const indices of reference.batches) {
      const samples = indices.map((i) => batch[i]);
      policyLosses.push((await trainer.updatePolicy(samples, { ...step, microBatchSize: 2 })).loss);
      valueLosses.push((await trainer.updateCritic(samples, { ...valueStep, microBatchSize: 2 })).loss);
    }
    await trainer.close();
    for (const [ours, theirs] of [
      [policyLosses, reference.policyLosses],
      [valueLosses, reference.valueLosses],
    ]) {
      assert.equal(theirs.length, 20);
      const difference = worst(ours, theirs);
      assert.ok(difference <= WORST_LOSS_ERROR, `${difference}: ${ours}`);
      // the first and the sixteenth step have the same samples
      assert.deepEqual(reference.batches[0], reference.batches[15]);
      assert.ok(theirs[0] - theirs[15] > 20 * WORST_LOSS_ERROR, "it did learn");
    }
  });
}

test("AdamW equals PyTorch's over ten steps, with gradients of all sizes, with and without a clip", () => {
  interface OptimiserStep {
    gradient: number[];
    norm: number;
    learningRate: number;
    after: number[];
  }
  const { adam, gradientClip, start, steps } = readJson<{
    adam: Adam;
    gradientClip: number;
    start: number[];
    steps: OptimiserStep[];
  }>("ppo/adamw.json");
  const weights = Float32Array.from(start);
  const moments = newMoments(weights.length);
  assert.ok(steps.some(({ norm }) => norm > gradientClip) && steps.some(({ norm }) => norm < gradientClip));
  for (const [i, { gradient, norm, learningRate, after }] of steps.entries()) {
    const given = Float32Array.from(gradient);
    assertClose([Math.sqrt(sumOfSquares(given))], [norm], "norm");
    const scale = clipScale(norm, gradientClip);
    adamwStep({ weights, gradient: given, ...moments }, adamwScalars(i + 1, { ...adam, learningRate, scale }));
    const difference = worst(weights, after);
    assert.ok(difference <= WORST_STEP_ERROR, `step ${i + 1}: ${difference}`);
  }
});
