/** Compares several workers with separate memory, like several GPUs, with one worker, on the CPU. */
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import type { Remote } from "./calls.ts";
import type { Adam, EngineOptions, Step } from "./engine.ts";
import { EngineWorker } from "./engine-worker.ts";
import type { ModelConfig } from "./model/config.ts";
import { randomSamples } from "./samples.fixture.ts";
import { tinyModel } from "./tiny-model.fixture.ts";
import { Trainer } from "./trainer.ts";
import type { StartWorker } from "./workers.ts";

const CONFIG: ModelConfig = {
  ...{ modelType: "qwen2", normEpsilon: 1e-6, ropeTheta: 1e4, tied: true, queryKeyValueBias: true },
  ...{ layers: 2, hiddenSize: 16, intermediateSize: 24, heads: 2, keyValueHeads: 1, headSize: 8 },
  ...{ vocabSize: 53, maxPositions: 128, initializerRange: 0.3 },
};
const LORA = { rank: 3, alpha: 6, targets: ["q_proj", "v_proj", "down_proj"], seed: 5 } as const;
/** A step moves a weight by its learning rate even if the gradient is only rounding, so this bounds the difference between results. */
const LEARNING_RATE = 0.001;
const ADAM: Adam = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01 };
const STEP: Step = {
  ...{ learningRate: LEARNING_RATE, gradientClip: 0.5, adam: ADAM },
  ...{ aggregation: "SeqMeanTokenMean", microBatchSize: 2 },
};
const POLICY = { ...STEP, temperature: 0.8, clipRatio: 0.2, dualClip: 3, entropyCoefficient: 0.01, klCoefficient: 0.1 };
const TOLERANCE = 1e-6;

const { folder, model } = tinyModel(CONFIG);

/** Starts workers in this thread. @param delay milliseconds that worker `i` sleeps before each call of this method */
const inThisThread = (delay: (worker: number, method: string) => number): StartWorker => {
  let started = 0;
  return (options) => {
    const [worker, own] = [started++, new EngineWorker(options)];
    let before: Promise<unknown> = Promise.resolve();
    return new Proxy({} as Remote<EngineWorker>, {
      get:
        (_, method: keyof EngineWorker) =>
        (...parameters: unknown[]) => {
          const call = async () => {
            const milliseconds = delay(worker, method);
            if (milliseconds > 0) await setTimeout(milliseconds);
            return (own[method] as (...parameters: unknown[]) => unknown)(...parameters);
          };
          // one after the other, as in a worker's thread, except for generation
          if (method === "generate") return before.then(call);
          const done = before.then(call);
          before = done.catch(() => {});
          return done;
        },
    });
  };
};
const atOnce = (_worker: number, _method: string) => 0;

async function withWorkers<T>(
  workers: number,
  work: (trainer: Trainer) => Promise<T>,
  { delay = atOnce, ...options }: Partial<EngineOptions> & { delay?: (worker: number, method: string) => number } = {},
): Promise<T> {
  const all = { model, threads: workers, workers, resident: true, microBatchTokens: 40, ...options };
  const trainer = new Trainer(all, undefined, inThisThread(delay));
  try {
    return await work(trainer);
  } finally {
    await trainer.close();
  }
}

/** Takes a step of the critic and one of the policy on each batch. Returns losses and norms, and weights and moments as in a checkpoint. */
async function train(trainer: Trainer, batches = [0, 1, 2], samples = 9) {
  const told: number[] = [];
  for (const seed of batches) {
    const batch = randomSamples(CONFIG.vocabSize, samples, seed);
    for (const result of [
      await trainer.updateCritic(batch, { ...STEP, valueClip: 0.5 }),
      await trainer.updatePolicy(batch, POLICY),
    ])
      told.push(...Object.values(result).map(Number));
  }
  const digest = await trainer.digest(); // copies weights and moments to this thread
  const states = [trainer.policy, trainer.critic!].flatMap(({ weights, moments }) => [
    weights.data.slice(),
    moments!.first.slice(),
    moments!.second.slice(),
  ]);
  return { told, states, digest };
}

type Trained = Awaited<ReturnType<typeof train>>;

/** Returns the largest difference, relative for numbers above 1. */
function difference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  assert.equal(a.length, b.length);
  return Array.from(a).reduce((most, x, i) => Math.max(most, Math.abs(x - b[i]!) / Math.max(1, Math.abs(b[i]!))), 0);
}

function assertNear(several: Trained, one: Trained): void {
  const found = [several.told, ...several.states].map((it, i) =>
    difference(it, i === 0 ? one.told : one.states[i - 1]!),
  );
  for (const most of found) assert.ok(most <= TOLERANCE, `${found}`);
}

for (const [name, options] of Object.entries({ "every weight": {}, LoRA: { adapter: LORA } })) {
  let one: Promise<Trained> | undefined;
  for (const workers of [2, 3, 4, 8])
    test(`${workers} workers have one worker's losses, weights and moments to 1e-6: ${name}`, async () => {
      one ??= withWorkers(1, train, options);
      assertNear(await withWorkers(workers, train, options), await one);
    });
}

test("the order in which workers finish changes no bit", async () => {
  const digests = new Set<string>();
  const beginning = fs.mkdtempSync(path.join(folder, "beginning-"));
  let delay = atOnce;
  await withWorkers(
    3,
    async (trainer) => {
      await trainer.save(beginning); // ONNX Runtime takes longer to make the sessions of other workers than these steps take
      for (const slow of [undefined, 0, 2])
        for (const method of ["run", "addGradient", "prepareStep", "adamw", "shareWeights", "takeWeights"]) {
          await trainer.load(beginning);
          delay = (worker: number, called: string) => (worker === slow && called === method ? 20 : 0);
          digests.add((await train(trainer, [0, 1])).digest);
        }
    },
    { delay: (worker, method) => delay(worker, method) },
  );
  assert.equal(digests.size, 1);
});

test("a worker without a micro-batch takes its part of the step", async () => {
  const few = (trainer: Trainer) => train(trainer, [0, 1, 2, 3], 2);
  assertNear(await withWorkers(4, few), await withWorkers(1, few));
});

test("several workers have one worker's log-probs, values and responses, before and after steps", async () => {
  const look = async (trainer: Trainer) => {
    const batch = randomSamples(CONFIG.vocabSize, 9, 50);
    const prompts = batch.map(({ prompt }) => prompt);
    const options = { seeds: prompts.map((_, i) => i), temperature: 1, topP: 1, maxNewTokens: 12 };
    const all = async () => ({
      generated: await trainer.generate(prompts, options),
      evaluated: await trainer.evaluate(batch, { temperature: 0.8, values: true }),
    });
    const before = await all();
    await train(trainer);
    return [before, await all()];
  };
  const [one, several] = [await withWorkers(1, look), await withWorkers(3, look)];
  assert.notDeepEqual(one[0]!.generated, one[1]!.generated);
  for (const [i, { generated, evaluated }] of one.entries()) {
    if (i === 0) assert.deepEqual(several[0]!.generated, generated);
    else
      for (const [j, { logProbs, response }] of generated.entries()) {
        assert.deepEqual(several[i]!.generated[j]!.response, response);
        assert.ok(difference(several[i]!.generated[j]!.logProbs, logProbs) < 1e-5);
      }
    for (const [j, expected] of evaluated.entries())
      for (const [part, numbers] of Object.entries(expected))
        assert.ok(difference(several[i]!.evaluated[j]![part as keyof typeof expected], numbers) < 1e-5, part);
  }
});

for (const [name, options] of Object.entries({ "every weight": {}, LoRA: { adapter: LORA } }))
  test(`any number of workers writes the same checkpoint files, from which any number goes on: ${name}`, async () => {
    const saved = async (workers: number) => {
      const directory = fs.mkdtempSync(path.join(folder, "checkpoint-"));
      const { digest } = await withWorkers(
        workers,
        async (trainer) => {
          await train(trainer, [0, 1]);
          return trainer.save(directory);
        },
        options,
      );
      const files = fs.globSync("**", { cwd: directory, withFileTypes: true }).filter((it) => it.isFile());
      const sizes = files.map((it) => [it.name, fs.statSync(path.join(it.parentPath, it.name)).size]).sort();
      return { directory, digest, sizes };
    };
    const [one, four] = [await saved(1), await saved(4)];
    assert.deepEqual(four.sizes, one.sizes);
    const goOn = ({ directory, digest }: typeof four, workers: number) =>
      withWorkers(
        workers,
        async (trainer) => {
          await trainer.load(directory);
          assert.equal(await trainer.digest(), digest);
          return train(trainer, [2, 3]);
        },
        options,
      );
    const from4 = await goOn(four, 4);
    const whole = await withWorkers(4, (trainer) => train(trainer, [0, 1, 2, 3]), options);
    assert.equal(from4.digest, whole.digest, "as if it had not been interrupted");
    for (const workers of [1, 2, 3]) assertNear(await goOn(four, workers), from4);
  });

test("if one worker runs out of memory in a step no worker has changed a weight, and the step can be repeated", async () => {
  await withWorkers(
    3,
    async (trainer) => {
      const batch = randomSamples(CONFIG.vocabSize, 9, 0);
      full = true;
      const before = await trainer.digest();
      await assert.rejects(trainer.updatePolicy(batch, POLICY), /full/);
      assert.equal(await trainer.digest(), before);
      full = false;
      await trainer.updatePolicy(batch, POLICY);
      const after = await trainer.digest();
      const again = await withWorkers(3, async (other) => {
        await other.updatePolicy(batch, POLICY);
        return other.digest();
      });
      assert.equal(after, again);
    },
    {
      delay: (worker, method) => {
        if (full && worker === 1 && method === "prepareStep") throw new Error("full");
        return 0;
      },
    },
  );
});
let full = false;
