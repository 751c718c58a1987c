/** Tests steps and evaluations: their gradients, results and workers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Remote } from "./calls.ts";
import { model, POLICY, PRETRAIN, samples, VALUE, withTrainer } from "./engine.fixture.ts";
import type { PolicyStep } from "./engine.ts";
import type { EngineWorker, Feeds } from "./engine-worker.ts";
import { Trainer } from "./trainer.ts";
import type { StartWorker } from "./workers.ts";

const AGGREGATIONS = ["SeqMeanTokenMean", "TokenMean", "SeqMeanTokenSumNorm"] as const;
/** Takes no step, so that all gradients are for the same weights. */
const STILL = { learningRate: 0, maxResponseTokens: 12 };

async function gradientOf(
  trainer: Trainer,
  kind: "policy" | "critic" | "pretrain",
  batch: ReturnType<typeof samples>,
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

test("a worker that fails says why", async () => {
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

/** Starts workers that record feeds, and compute nothing. @param packs whether each one's graphs take rows one after the other */
function recording(packs: readonly boolean[]) {
  const passes: Feeds[] = [];
  let started = 0;
  const start: StartWorker = () => {
    const worker = started++;
    const own: Partial<Remote<EngineWorker>> = {
      packs: async () => packs[worker]!,
      run: async (_name, given) => {
        passes.push(...given);
        return { outputs: given.map(({ predicting }) => ({ logProbs: predicting!, entropies: predicting! })) };
      },
    };
    return new Proxy(own, {
      get: (_, name) => own[name as keyof typeof own] ?? (async () => {}),
    }) as Remote<EngineWorker>;
  };
  return { passes, start };
}

test("where all workers pack rows, passes have no padding and as many sequences as fit; results are in the batch's order", async () => {
  const batch = samples(40);
  const tokens = 150;
  for (const packs of [[true], [true, true], [true, false], [false]]) {
    const { passes, start } = recording(packs);
    const options = { model, threads: 1, workers: packs.length, microBatchTokens: tokens, rowTokens: 40 };
    const trainer = new Trainer(options, undefined, start);
    const found = await trainer.evaluate(batch, { temperature: 1, values: false, reference: false });
    const real = passes.map(({ predicting, ids, positions }) => {
      const [places, line] = [positions!.data as Int32Array, ids!.shape[1]!];
      return { predicting: predicting!.data as Int32Array, places, line, lines: ids!.shape[0]! };
    });
    const sizes = real.map(({ places }) => places.length);
    if (packs.every(Boolean)) {
      assert.ok(Math.max(...sizes) <= tokens, `passes of ${sizes}`);
      const total = sizes.reduce((a, b) => a + b, 0);
      assert.ok(real.every(({ lines }) => lines === 1));
      assert.ok(
        passes.length <= packs.length * Math.ceil((1.1 * total) / (packs.length * tokens)),
        `passes of ${sizes}`,
      );
      // the last token of a line predicts: it is no padding
      for (const { predicting, line } of real) assert.equal(Math.max(...predicting), line - 1);
    } else assert.ok(real.some(({ lines }) => lines > 1));
    for (const [i, { response }] of batch.entries())
      for (let t = 1; t < response.length; t++)
        assert.equal(found[i]!.logProbs[t], found[i]!.logProbs[t - 1]! + 1, "a response's tokens stand side by side");
    await trainer.close();
  }
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

test("clipRatioHigh bounds ratios of positive advantages alone, and is clipRatio if it is not set", async () => {
  const after = (advantage: number, clip: Partial<PolicyStep>) =>
    withTrainer(async (trainer) => {
      const batch = samples(6);
      const start = await trainer.evaluate(batch, { temperature: 0.8, values: false });
      for (const [i, sample] of batch.entries()) {
        // Ratios from 0.65 to 1.45, which lie on both sides of each bound.
        sample.proximalLogProbs = start[i].logProbs.map((logProb, t) => logProb - Math.log(0.65 + 0.1 * ((i + t) % 9)));
        sample.advantages.fill(advantage);
      }
      const { loss, clipFraction } = await trainer.updatePolicy(batch, { ...POLICY, ...clip });
      return { loss, clipFraction, gradient: trainer.policy.gradient!.data.slice() };
    });
  const low = await after(1, { clipRatio: 0.2 });
  const high = await after(1, { clipRatio: 0.3 });
  assert.ok(high.clipFraction < low.clipFraction);
  assert.notDeepEqual(high.gradient, low.gradient);
  assert.deepEqual(await after(1, { clipRatio: 0.2, clipRatioHigh: 0.3 }), high);
  assert.deepEqual(await after(1, { clipRatio: 0.2, clipRatioHigh: 0.2 }), low);
  const negative = await after(-1, { clipRatio: 0.2 });
  assert.ok(negative.clipFraction > 0);
  assert.deepEqual(await after(-1, { clipRatio: 0.2, clipRatioHigh: 0.3 }), negative);
  assert.notDeepEqual((await after(-1, { clipRatio: 0.3 })).gradient, negative.gradient);
});

test("the critic starts at a given value, learns returns and is kept when it is initialised again", async () => {
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
