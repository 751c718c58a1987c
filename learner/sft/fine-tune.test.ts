import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readAdapter } from "../engine/model/adapter-folder.ts";
import { readConfig } from "../engine/model/folder.ts";
import { Trainer } from "../engine/trainer.ts";
import { holdOut } from "./encode.ts";
import { type FineTuneSettings, type FineTuneStep, fineTune, type HeldOut } from "./fine-tune.ts";

// numbers from PyTorch, transformers and peft, made by test/fixtures/reference/make_sft_reference.py

const ROOT = join(import.meta.dirname, "../..");
const directory = mkdtempSync(join(tmpdir(), "fine-tune-"));
after(() => rmSync(directory, { recursive: true }));
/** Absolute error of a loss. Measured: 2e-6 at most. */
const WORST_LOSS_ERROR = 1e-5;

interface Case {
  model: string;
  adapter?: string;
  settings: FineTuneSettings;
  training: Record<"prompt" | "response", number[]>[];
  heldOut: Case["training"];
  steps: { loss: number; gradientNorm: number; learningRate: number }[];
  heldOutFit: HeldOut[];
}

function open(name: string) {
  const read: Case = JSON.parse(readFileSync(join(ROOT, `test/fixtures/sft/${name}.json`), "utf8"));
  const typed = (examples: Case["training"]) =>
    examples.map(({ prompt, response }) => ({
      prompt: Int32Array.from(prompt),
      response: Int32Array.from(response),
    }));
  const model = join(ROOT, read.model);
  const folder = read.adapter && join(ROOT, read.adapter);
  const adapter = folder ? { ...readAdapter(folder, readConfig(model)).lora, seed: 0, folder } : undefined;
  const start = () => new Trainer({ model, threads: 1, adapter, critic: false, reference: false });
  return { ...read, data: { training: typed(read.training), heldOut: typed(read.heldOut) }, start };
}

function recorder() {
  const [steps, heldOut]: [FineTuneStep[], HeldOut[]] = [[], []];
  return {
    ...{ steps, heldOut },
    watching: {
      onStep: (step: FineTuneStep) => void steps.push(step),
      onHeldOut: (fit: HeldOut) => void heldOut.push(fit),
    },
  };
}

for (const name of ["full", "lora"])
  test(`${name}: 20 steps have PyTorch's losses, gradient norms, learning rates, held-out losses and accuracies`, async () => {
    const { data, settings, steps, heldOutFit, start } = open(name);
    const trainer = start();
    const found = recorder();
    await fineTune(trainer, data, settings, found.watching);
    assert.equal(found.steps.length, 20);
    for (const [i, { loss, gradientNorm, learningRate }] of found.steps.entries()) {
      const reference = steps[i]!;
      assert.ok(Math.abs(loss - reference.loss) < WORST_LOSS_ERROR, `loss ${i}: ${loss}, not ${reference.loss}`);
      assert.ok(Math.abs(gradientNorm / reference.gradientNorm - 1) < 2e-3, `norm ${i}`);
      assert.ok(Math.abs(learningRate / reference.learningRate - 1) < 1e-6, `learning rate ${i}`);
    }
    assert.deepEqual(
      found.heldOut.map(({ step }) => step),
      heldOutFit.map(({ step }) => step),
    );
    for (const [i, { loss, accuracy }] of found.heldOut.entries()) {
      assert.ok(Math.abs(loss - heldOutFit[i]!.loss) < WORST_LOSS_ERROR, `held-out loss ${i}`);
      assert.equal(accuracy, heldOutFit[i]!.accuracy);
    }
    await trainer.close();
  });

test("training that goes on from a checkpoint takes the same steps, bit for bit", async () => {
  const { data, settings, start } = open("lora");
  const whole = start();
  const all = recorder();
  await fineTune(whole, data, settings, all.watching);

  const stopped = start();
  const first = recorder();
  const abort = new AbortController();
  const watching = {
    ...first.watching,
    signal: abort.signal,
    onStep: (step: FineTuneStep) => {
      first.watching.onStep(step);
      if (step.step === 8) abort.abort(); // the last of the second epoch, whose held-out examples are not measured yet
    },
  };
  await assert.rejects(fineTune(stopped, data, settings, watching), { name: "AbortError" });
  const checkpoint = join(directory, "checkpoint");
  mkdirSync(checkpoint);
  await stopped.save(checkpoint);

  const resumed = start();
  await resumed.load(checkpoint);
  const rest = recorder();
  await fineTune(resumed, data, settings, rest.watching, { step: 8, measured: first.heldOut.at(-1)!.step });
  assert.equal(await resumed.digest(), await whole.digest());
  const plain = (steps: FineTuneStep[]) => steps.map(({ seconds, ...step }) => step);
  assert.deepEqual(plain([...first.steps, ...rest.steps]), plain(all.steps));
  assert.deepEqual([...first.heldOut, ...rest.heldOut], all.heldOut);
  for (const trainer of [whole, stopped, resumed]) await trainer.close();
});

test("each epoch trains on each example once, in another order", async () => {
  const { data, settings } = open("lora");
  const orders: number[][] = [[], []];
  const engine = {
    pretrain: async (batch: typeof data.training) => {
      const order = orders.find(({ length }) => length < data.training.length)!;
      order.push(...batch.map((sequence) => data.training.indexOf(sequence)));
      return { loss: 1, gradientNorm: 1, skipped: false };
    },
    measureFit: async () => ({ loss: 1, correct: 1, tokens: 1 }),
  };
  await fineTune(engine, data, { ...settings, epochs: 2 }, recorder().watching);
  for (const order of orders)
    assert.deepEqual(
      [...order].sort((a, b) => a - b),
      [...data.training.keys()],
    );
  assert.notDeepEqual(orders[0], orders[1]);
});

test("a gradient that is not finite ends training, with the step and a remedy", async () => {
  const { data, settings } = open("lora");
  const engine = {
    pretrain: async () => ({ loss: Number.NaN, gradientNorm: Number.NaN, skipped: true }),
    measureFit: async () => ({ loss: 1, correct: 1, tokens: 1 }),
  };
  const failed = fineTune(engine, data, settings, recorder().watching);
  await assert.rejects(failed, { message: "the gradient of step 1 is not finite; use a lower learning rate" });
});

test("the held-out share is rounded down, the same for the same seed, and leaves something to train on", () => {
  const sequences = Array.from({ length: 10 }, (_, i) => ({ prompt: Int32Array.of(i), response: Int32Array.of(i) }));
  const held = (share: number, seed = 0, count = 10) => {
    const { training, heldOut } = holdOut(sequences.slice(0, count), share, seed);
    assert.equal(training.length + heldOut.length, count);
    return heldOut.map(({ prompt }) => prompt[0]);
  };
  assert.equal(held(0.25).length, 2);
  assert.deepEqual(held(0.25), held(0.25));
  assert.notDeepEqual(held(0.5), held(0.5, 1));
  assert.deepEqual(held(0), []);
  assert.deepEqual(held(0.99, 0, 1), []);
});
