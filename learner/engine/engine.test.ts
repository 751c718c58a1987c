import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import fc from "fast-check";
import {
  type Engine,
  type LogProbs,
  type PolicySample,
  type PolicyStep,
  type PretrainStep,
  startEngine,
  type ValueSample,
} from "./engine.ts";
import { configJson, type ModelConfig } from "./model/config.ts";
import { writeModelFolder } from "./model/folder.ts";
import type { Response, ResponsePart } from "./model/generate.ts";
import { initialWeights } from "./model/weights.ts";
import { randomSamples } from "./samples.fixture.ts";
import { Trainer } from "./trainer.ts";

const CONFIG: ModelConfig = {
  modelType: "qwen2",
  vocabSize: 23,
  hiddenSize: 16,
  intermediateSize: 24,
  layers: 2,
  heads: 4,
  keyValueHeads: 2,
  headSize: 4,
  normEpsilon: 1e-6,
  ropeTheta: 10000,
  tied: true,
  queryKeyValueBias: true,
  maxPositions: 64,
  initializerRange: 0.2,
};
const ADAM = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01 };
const PRETRAIN: PretrainStep = {
  learningRate: 0.01,
  gradientClip: 1,
  adam: ADAM,
  aggregation: "TokenMean",
  microBatchSize: 8,
};
const POLICY: PolicyStep = {
  ...PRETRAIN,
  aggregation: "SeqMeanTokenMean",
  temperature: 0.8,
  clipRatio: 0.2,
  dualClip: 0,
  entropyCoefficient: 0.01,
};
const VALUE = { ...PRETRAIN, valueClip: 0.5 };

let folder: string;
let model: string;
before(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "engine-"));
  model = path.join(folder, "model");
  fs.mkdirSync(model);
  fs.writeFileSync(path.join(model, "config.json"), JSON.stringify(configJson(CONFIG, { eos_token_id: 0 })));
  fs.writeFileSync(path.join(model, "tokenizer.json"), '{"kept": true}');
  writeModelFolder(model, model, CONFIG, initialWeights(CONFIG, 3));
});
after(() => fs.rmSync(folder, { recursive: true }));

type TestSample = PolicySample & ValueSample;

const samples = (count: number, seed = 1): TestSample[] => randomSamples(CONFIG.vocabSize, count, seed);

async function withTrainer<T>(work: (trainer: Trainer) => Promise<T>, options = {}): Promise<T> {
  const trainer = new Trainer({ model, threads: 1, ...options });
  try {
    return await work(trainer);
  } finally {
    await trainer.close();
  }
}

const AGGREGATIONS = ["SeqMeanTokenMean", "TokenMean", "SeqMeanTokenSumNorm"] as const;
/** Takes no step, so that all gradients are for the same weights. */
const STILL = { learningRate: 0, maxResponseTokens: 12 };

async function gradientOf(
  trainer: Trainer,
  kind: "policy" | "critic" | "pretrain",
  batch: TestSample[],
  o: { aggregation: (typeof AGGREGATIONS)[number]; microBatchSize: number },
): Promise<Float32Array> {
  if (kind === "policy") await trainer.updatePolicy(batch, { ...POLICY, klCoefficient: 0.1, ...STILL, ...o });
  if (kind === "critic") await trainer.updateCritic(batch, { ...VALUE, ...STILL, ...o });
  if (kind === "pretrain") await trainer.pretrain(batch, { ...PRETRAIN, ...STILL, ...o });
  return (kind === "critic" ? trainer.critic! : trainer.policy).gradient!.data.slice();
}

test("no division into micro-batches, rows or workers changes a gradient", async () => {
  const apart = new Trainer({ model, threads: 1, microBatchTokens: 1e6, rowTokens: 0 });
  const trainers = [
    ...[1e6, 40, 90].map((microBatchTokens) => new Trainer({ model, threads: 1, microBatchTokens })),
    ...[2, 3].map((workers) => new Trainer({ model, threads: workers, workers, microBatchTokens: 60 })),
    new Trainer({ model, threads: 1, rowTokens: 4096 }), // attention in more blocks, which are computed again
    new Trainer({ model, threads: 3, workers: 1, microBatchTokens: 60 }),
  ];
  const division = fc.record({
    count: fc.integer({ min: 1, max: 13 }),
    seed: fc.integer({ min: 1, max: 1000 }),
    kind: fc.constantFrom("policy", "critic", "pretrain"),
    aggregation: fc.constantFrom(...AGGREGATIONS),
    microBatchSize: fc.integer({ min: 1, max: 13 }),
    trainer: fc.nat(6),
  });
  let moved = 0;
  const property = fc.asyncProperty(division, async ({ count, seed, kind, aggregation, microBatchSize, trainer }) => {
    const batch = samples(count, seed);
    const whole = await gradientOf(apart, kind, batch, { aggregation, microBatchSize: count });
    const parts = await gradientOf(trainers[trainer]!, kind, batch, { aggregation, microBatchSize });
    const largest = whole.reduce((max, x) => Math.max(max, Math.abs(x)), 0);
    const worst = parts.reduce((max, x, i) => Math.max(max, Math.abs(x - whole[i]!)), 0);
    assert.ok(worst <= 4e-6 * largest, `${worst} of ${largest}`);
    moved += Number(largest > 0);
  });
  await fc.assert(property, { numRuns: 70, seed: 1 });
  assert.ok(moved > 60, `only ${moved} of 70 gradients are not 0`);
  for (const trainer of [apart, ...trainers]) await trainer.close();
});

test("several workers give the losses of one worker, and the same number of workers gives the same bits", async () => {
  const train = async (trainer: Trainer) => {
    const batch = samples(11);
    const steps = [];
    for (let step = 0; step < 3; step++) {
      steps.push(await trainer.updateCritic(batch, VALUE), await trainer.updatePolicy(batch, POLICY));
    }
    const options = { temperature: 1, topP: 1, maxNewTokens: 6, seeds: batch.map((_, i) => i) };
    const prompts = batch.map((_, i) => batch[i >> 1]!.prompt);
    const [evaluated, generated] = [
      await trainer.evaluate(batch, { temperature: 0.8, values: true }),
      await trainer.generate(prompts, options),
    ];
    return {
      steps,
      evaluated,
      generated,
      reference: await trainer.generate(prompts, { ...options, weights: "reference" }),
    };
  };
  const alone = await withTrainer(train, { microBatchTokens: 40 });
  const two = await withTrainer(train, { microBatchTokens: 40, workers: 2 });
  assert.deepEqual(await withTrainer(train, { microBatchTokens: 40, workers: 2 }), two);
  const near = (a: ArrayLike<number>, b: ArrayLike<number>) => {
    assert.equal(a.length, b.length);
    for (let t = 0; t < a.length; t++) assert.ok(Math.abs(a[t]! - b[t]!) < 1e-4, `${a[t]} and ${b[t]}`);
  };
  const lossesOf = ({ steps }: typeof two) => steps.map(({ loss }) => loss);
  near(lossesOf(two), lossesOf(alone));
  for (const [i, sample] of alone.evaluated.entries()) {
    for (const field of ["logProbs", "referenceLogProbs", "values", "entropies"] as const)
      near(two.evaluated[i]![field], sample[field]);
  }
  for (const which of ["generated", "reference"] as const) {
    for (const [i, { response, logProbs }] of alone[which].entries()) {
      assert.deepEqual(two[which][i]!.response, response);
      near(two[which][i]!.logProbs, logProbs);
    }
  }
});

test("a worker that cannot do its work says why", async () => {
  await withTrainer(
    async (trainer) => {
      trainer.policy.weights.data.fill(Number.NaN);
      const prompts = samples(4).map(({ prompt }) => prompt);
      const options = { temperature: 1, topP: 1, maxNewTokens: 2, seeds: [1, 2, 3, 4] };
      await assert.rejects(trainer.generate(prompts, options), { code: "generation", message: /not finite/ });
    },
    { workers: 2 },
  );
});

for (const rowTokens of [512, 4096])
  test(`padding, neighbours and responses to the same prompt change no log-prob, in rows of up to ${rowTokens}`, async () => {
    const batch = samples(9);
    await withTrainer(
      async (trainer) => {
        const together = await trainer.evaluate(batch, { temperature: 0.8, values: true });
        for (const [i, sequence] of batch.entries()) {
          const [alone] = await trainer.evaluate([sequence], { temperature: 0.8, values: true });
          for (const field of ["logProbs", "entropies", "referenceLogProbs"] as const) {
            assert.equal(together[i][field].length, sequence.response.length);
            for (const [t, value] of alone[field].entries()) assert.ok(Math.abs(together[i][field][t] - value) < 1e-5);
          }
        }
      },
      { microBatchTokens: 1e6, rowTokens },
    );
  });

test("pretraining lowers the loss and changes the policy's log-probs, but not the reference's", async () => {
  await withTrainer(async (trainer) => {
    const batch = samples(6);
    const first = await trainer.pretrain(batch, PRETRAIN);
    const before = await trainer.evaluate(batch, { temperature: 1, values: false });
    for (let i = 0; i < 30; i++) await trainer.pretrain(batch, PRETRAIN);
    const last = await trainer.pretrain(batch, PRETRAIN);
    assert.ok(last.loss < first.loss * 0.6, `${first.loss} -> ${last.loss}`);
    const evaluated = await trainer.evaluate(batch, { temperature: 1, values: false });
    assert.deepEqual(evaluated[0].referenceLogProbs, before[0].referenceLogProbs);
    assert.notDeepEqual(evaluated[0].logProbs, before[0].logProbs);
  });
});

test("policy steps raise tokens of positive advantage and lower the others; metrics compare with the proximal policy", async () => {
  await withTrainer(async (trainer) => {
    const batch = samples(6);
    const start = await trainer.evaluate(batch, { temperature: 0.8, values: false });
    for (const [i, sample] of batch.entries()) {
      sample.proximalLogProbs = start[i].logProbs;
      sample.advantages.fill(i % 2 ? 1 : -1);
      sample.importance.fill(1);
      sample.weight = 1;
    }
    const step = await trainer.updatePolicy(batch, { ...POLICY, entropyCoefficient: 0 });
    assert.ok(Math.abs(step.loss) < 1e-4 && Math.abs(step.kl) < 1e-5 && Math.abs(step.ratioMean - 1) < 1e-5);
    assert.equal(step.clipFraction, 0);
    for (let i = 0; i < 3; i++) await trainer.updatePolicy(batch, { ...POLICY, entropyCoefficient: 0 });
    const end = await trainer.evaluate(batch, { temperature: 0.8, values: false });
    const gain = (i: number) => end[i].logProbs.reduce((sum, x, t) => sum + x - start[i].logProbs[t], 0);
    for (const i of batch.keys()) assert.ok(i % 2 ? gain(i) > 0 : gain(i) < 0, `sample ${i}: ${gain(i)}`);
    const later = await trainer.updatePolicy(batch, POLICY);
    assert.ok(later.clipFraction > 0 && later.ratioMax > 1.2);

    for (const sample of batch) sample.advantages.fill(-1);
    const still = { ...POLICY, learningRate: 0 };
    const [single, dual] = [
      await trainer.updatePolicy(batch, still),
      await trainer.updatePolicy(batch, { ...still, dualClip: 1.1 }),
    ];
    assert.ok(dual.clipFraction > single.clipFraction, "ratios above 1.1, which were raised before");
    assert.ok(dual.loss < single.loss);
  });
});

test("the critic starts at the value it is given, learns returns, and is kept when initialised again", async () => {
  await withTrainer(async (trainer) => {
    await trainer.initializeCritic(-9.5);
    const batch = samples(8);
    const [first] = await trainer.evaluate(batch, { temperature: 1, values: true });
    for (const value of first.values) assert.equal(value, -9.5);
    for (const sample of batch) {
      sample.oldValues.fill(-9.5);
      sample.returns.fill(sample.prompt.length > 12 ? -9.2 : -9.8);
    }
    let result = await trainer.updateCritic(batch, VALUE);
    for (let i = 0; i < 40; i++) result = await trainer.updateCritic(batch, VALUE);
    assert.ok(result.explainedVariance > 0.5, `${result.explainedVariance}`);
    await trainer.initializeCritic(5);
    const [same] = await trainer.evaluate(batch, { temperature: 1, values: true });
    assert.ok(same.values.every((value) => value < -9));
  });
});

test("a clip of 0 clips neither gradients nor values", async () => {
  const after = (step: { gradientClip: number; valueClip: number }) =>
    withTrainer(async (trainer) => {
      await trainer.updateCritic(samples(4), { ...VALUE, ...step });
      return trainer.critic!.weights.data.slice();
    });
  const open = await after({ gradientClip: 0, valueClip: 0 });
  assert.deepEqual(open, await after({ gradientClip: 1e9, valueClip: 1e9 }));
  assert.notDeepEqual(open, await after({ gradientClip: 1e9, valueClip: 0.5 }));
});

test("a gradient that is not finite skips the step and changes nothing", async () => {
  await withTrainer(async (trainer) => {
    const batch = samples(4);
    await trainer.updatePolicy(batch, POLICY);
    const before = await trainer.digest();
    for (const advantage of [Number.NaN, Number.POSITIVE_INFINITY]) {
      batch[2].advantages.fill(advantage);
      const result = await trainer.updatePolicy(batch, POLICY);
      assert.equal(result.skipped, true, `${advantage}: ${result.gradientNorm}`);
      assert.equal(await trainer.digest(), before);
    }
  });
});

test("a run continues from a checkpoint bit for bit, in the engine's worker too", async () => {
  const batch = samples(10);
  const train = async (engine: Engine) => {
    const policy = await engine.updatePolicy(batch, POLICY);
    const critic = await engine.updateCritic(batch, VALUE);
    return { policy, critic };
  };
  const directory = path.join(folder, "checkpoint");
  const engine = await startEngine({ model, threads: 1 });
  await train(engine);
  const { digest } = await engine.save(directory);
  const next = await train(engine);
  const end = await engine.digest();
  assert.notEqual(end, digest);
  await engine.load(directory);
  assert.equal(await engine.digest(), digest);
  await engine.close();
  assert.equal(fs.readFileSync(path.join(directory, "policy", "tokenizer.json"), "utf8"), '{"kept": true}');

  await withTrainer(async (resumed) => {
    await resumed.load(directory);
    assert.equal(await resumed.digest(), digest);
    assert.deepEqual(await train(resumed), next);
    assert.equal(await resumed.digest(), end);
  });
});

test("an engine without a critic ignores the critic of a checkpoint", async () => {
  const directory = path.join(folder, "with-critic");
  await withTrainer(async (trainer) => {
    await trainer.updateCritic(samples(3), VALUE);
    await trainer.save(directory);
  });
  await withTrainer(
    async (trainer) => {
      await trainer.load(directory);
      assert.equal(trainer.critic, undefined);
      await trainer.updatePolicy(samples(3), POLICY);
      await trainer.save(path.join(folder, "without-critic"));
      assert.equal(fs.existsSync(path.join(folder, "without-critic", "critic")), false);
    },
    { critic: false },
  );
});

test("an engine loads a checkpoint without moments and critic", async () => {
  const directory = path.join(folder, "fresh");
  await withTrainer(async (trainer) => {
    const { digest } = await trainer.save(directory);
    await trainer.pretrain(samples(2), PRETRAIN);
    await trainer.initializeCritic(1);
    await trainer.load(directory);
    assert.equal(await trainer.digest(), digest);
    assert.equal(trainer.critic, undefined);
  });
});

test("generation through the worker agrees with the training forward", async () => {
  const engine = await startEngine({ model, threads: 1 });
  const prompts = samples(5).map(({ prompt }) => prompt);
  const options = { seeds: [1, 2, 3, 4, 5], temperature: 0.8, topP: 1, maxNewTokens: 20 };
  const generated = await engine.generate(prompts, options);
  const evaluated = await engine.evaluate(
    generated.map(({ response }, i) => ({ prompt: prompts[i], response })),
    { temperature: 0.8, values: false },
  );
  for (const [i, { logProbs, response, finished }] of generated.entries()) {
    assert.equal(finished, response.at(-1) === 0);
    for (const [t, value] of logProbs.entries()) assert.ok(Math.abs(value - evaluated[i].logProbs[t]) < 1e-4);
  }
  await engine.close();
  await assert.rejects(engine.digest(), { code: "worker" });
});

test("every worker reports each response when it ends, and the number of slots changes no response", async () => {
  const prompts = samples(9).map(({ prompt }) => prompt);
  const options = { seeds: [...prompts.keys()], temperature: 1, topP: 1, maxNewTokens: 20 };
  const found = [];
  for (const slots of [undefined, 3]) {
    const engine = await startEngine({ model, threads: 2, slots });
    const told = new Map<number, ResponsePart>();
    found.push(await engine.generate(prompts, options, (index, part) => told.set(index, part)));
    assert.deepEqual(told, new Map(found[0]!.map((response, i) => [i, { ...response, ended: true }])));
    await engine.close();
  }
  assert.deepEqual(found[1], found[0]);
});

test("calls that generate overlap; a step waits for earlier calls, and later calls wait for the step", async () => {
  const engine = await startEngine({ model, threads: 2, slots: 12 });
  const prompts = samples(8).map(({ prompt }) => prompt);
  const options = { seeds: [...prompts.keys()], temperature: 1, topP: 1, eosIds: [] };
  const alone = await engine.generate(prompts, { ...options, maxNewTokens: 40 });
  const order: string[] = [];
  const named = async <T>(name: string, work: Promise<T>) => {
    const result = await work;
    order.push(name);
    return result;
  };
  const long = named("long", engine.generate(prompts, { ...options, maxNewTokens: 40 }));
  const short = named("short", engine.generate([prompts[0]!], { ...options, seeds: [0], maxNewTokens: 2 }));
  const trained = named("trained", engine.pretrain(samples(4, 7), PRETRAIN));
  const later = named("later", engine.generate(prompts, { ...options, maxNewTokens: 40 }));
  assert.deepEqual(await long, alone);
  assert.deepEqual((await short)[0]!.response, alone[0]!.response.slice(0, 2));
  assert.notDeepEqual(await later, alone, "the later call reads the trained weights");
  await trained;
  assert.deepEqual(order, ["short", "long", "trained", "later"]);
  await engine.close();
});

test("a call whose signal is aborted ends in all threads and frees its slots", async () => {
  const engine = await startEngine({ model, threads: 2, slots: 2 });
  const { prompt } = samples(1)[0]!;
  const options = { seeds: [1], temperature: 1, topP: 1, maxNewTokens: 50, eosIds: [] };
  const reason = new Error("nobody waits for it");
  const stop = new AbortController();
  const unwanted = engine.generate([prompt, prompt], { ...options, seeds: [1, 2], signal: stop.signal }, () =>
    assert.fail("a response ended"),
  );
  stop.abort(reason);
  await assert.rejects(unwanted, reason);
  await assert.rejects(engine.generate([prompt], { ...options, signal: AbortSignal.abort(reason) }), reason);
  const [{ response }] = (await engine.generate([prompt], options)) as [Response];
  assert.equal(response.length, 50);
  await engine.close();
});

test("the reference generates with the model folder's weights after training and after a load", async () => {
  await withTrainer(async (trainer) => {
    const prompts = samples(4).map(({ prompt }) => prompt);
    const options = { seeds: [0, 0, 0, 0], temperature: 0, topP: 1, maxNewTokens: 12 };
    const generate = async (weights?: "policy" | "reference") =>
      (await trainer.generate(prompts, { ...options, weights })).map(({ response }) => [...response]);
    const start = await generate();
    for (let step = 0; step < 8; step++) await trainer.pretrain(samples(4, 7), { ...PRETRAIN, learningRate: 0.05 });
    assert.notDeepEqual(await generate("policy"), start);
    assert.deepEqual(await generate("reference"), start);
    const trained = await generate();
    const directory = path.join(folder, "trained");
    await trainer.save(directory);
    await trainer.load(directory);
    assert.deepEqual(await generate("reference"), start);
    assert.deepEqual(await generate(), trained);
  });
});

test("an engine without a reference serves the policy and refuses calls that need the reference", async () => {
  await withTrainer(
    async (trainer) => {
      const options = { temperature: 1, values: false };
      const refused = { code: "reference", message: /the engine was started without a reference/ };
      await assert.rejects(trainer.evaluate(samples(1), options), refused);
      const how = { seeds: [0], temperature: 0, topP: 1, maxNewTokens: 4 };
      const prompts = samples(1).map(({ prompt }) => prompt);
      await assert.rejects(trainer.generate(prompts, { ...how, weights: "reference" }), refused);
      const [{ response }] = (await trainer.generate(prompts, how)) as [Response];
      const sequence = { prompt: prompts[0]!, response };
      const [{ logProbs }] = (await trainer.evaluate([sequence], { ...options, reference: false })) as [LogProbs];
      await withTrainer(async (whole) => {
        assert.deepEqual((await whole.evaluate([sequence], options))[0]!.logProbs, logProbs);
      });
    },
    { reference: false },
  );
});

test("an engine refuses a missing model folder and invalid sequences with the reason", async () => {
  await assert.rejects(startEngine({ model: path.join(folder, "nowhere"), threads: 1 }), {
    code: "config",
    message: /nowhere\/config\.json/,
  });
  const engine = await startEngine({ model, threads: 1 });
  const response = Int32Array.of(1);
  for (const [sequence, message] of [
    [{ prompt: Int32Array.of(), response }, /sequence 0: its prompt is empty/],
    [{ prompt: Int32Array.of(-1), response }, /token -1 is not in the vocabulary of 23/],
    [{ prompt: Int32Array.of(23), response }, /token 23 is not in the vocabulary of 23/],
    [{ prompt: new Int32Array(64), response }, /it has 65 tokens; the model has 64 positions/],
  ] as const) {
    await assert.rejects(engine.evaluate([sequence], { temperature: 1, values: false }), { code: "batch", message });
  }
  const full = { prompt: new Int32Array(63), response };
  const [evaluated] = await engine.evaluate([full], { temperature: 1, values: false });
  assert.ok(evaluated!.logProbs[0]! < 0, "a sequence of all 64 positions is evaluated");
  await engine.close();
});
