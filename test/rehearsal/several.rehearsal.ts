/** Several GPUs in one engine: the placement of tensors, the bytes over the bus, and results that equal one GPU's. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import test, { after, before } from "node:test";
import { type EngineOptions, type RunningEngine, type Step, startEngine } from "../../learner/engine/engine.ts";
import { layoutOf } from "../../learner/engine/graph/parameters.ts";
import { configJson, type ModelConfig } from "../../learner/engine/model/config.ts";
import { saveWeights } from "../../learner/engine/model/files.ts";
import { isMultiplied } from "../../learner/engine/model/halved.ts";
import { uniforms } from "../../learner/engine/model/random.ts";
import { readSafetensors } from "../../learner/engine/model/safetensors.ts";
import { elementCount, parameters } from "../../learner/engine/model/weights.ts";
import { randomSamples } from "../../learner/engine/samples.fixture.ts";
import { exitStatusOf } from "../../learner/failures.ts";
import { EXIT_STATUS } from "../../proto/exit-status.ts";
import { ADAPTER } from "../bench/gpu.ts";
import { copiedBytes, counting, failDevice } from "./counts.ts";

process.env.REHEARSAL_DEVICES = "8"; // both are read when the library is loaded, with the first session on a device
process.env.REHEARSAL_ARITHMETIC = "1";

const CONFIG: ModelConfig = {
  ...{ modelType: "qwen2", normEpsilon: 1e-6, ropeTheta: 1e6, tied: true, queryKeyValueBias: true },
  ...{ layers: 2, hiddenSize: 32, intermediateSize: 48, heads: 4, keyValueHeads: 2, headSize: 8 },
  ...{ vocabSize: 97, maxPositions: 256, initializerRange: 0.2 },
};
const DEVICES = (count: number) => Array.from({ length: count }, (_, id) => ({ kind: "cuda", id }) as const);
const TRAINED: Record<string, Partial<EngineOptions>> = { LoRA: { adapter: ADAPTER }, "every weight": {} };
/** Tolerance of a number; one test makes it relative for numbers above 1. */
const TOLERANCE = 1e-6;
/** Tolerance of a log-prob: KV cache and factors are bfloat16. Weights of the previous step would be 0.5 off. */
const GENERATION_TOLERANCE = 0.06;
/** Every weight is trained with this rate, and moves by it where its gradient is rounding alone. */
const STEP: Step = {
  ...{ learningRate: 1e-4, gradientClip: 1, aggregation: "SeqMeanTokenMean", microBatchSize: 4 },
  adam: { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01 },
};
const POLICY = { ...STEP, temperature: 0.8, clipRatio: 0.2, dualClip: 3, entropyCoefficient: 0.01, klCoefficient: 0.1 };
const BATCH = randomSamples(CONFIG.vocabSize, 24);

let folder: string;
let model: string;
before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), "longrun-several-"));
  model = path.join(folder, "model");
  const next = uniforms(1, "weights");
  const random = (around: number) => () => around + 2 * CONFIG.initializerRange * (next() - 0.5);
  const tensors = parameters(CONFIG).map(({ name, shape, kind }) => {
    const data = Float32Array.from({ length: elementCount(shape) }, random(kind === "norm" ? 1 : 0));
    return { name, shape, read: () => data };
  });
  mkdirSync(model);
  writeFileSync(path.join(model, "config.json"), JSON.stringify(configJson(CONFIG, { eos_token_id: 0 })));
  saveWeights(model, tensors, { dtype: "F32" });
});
after(() => rm(folder, { recursive: true }));

async function onDevices<T>(
  count: number,
  options: Partial<EngineOptions>,
  act: (engine: RunningEngine) => Promise<T>,
): Promise<T> {
  const devices = DEVICES(count);
  const where = { device: devices[0]!, ...(count > 1 && { devices }) };
  const engine = await startEngine({
    model,
    threads: 1,
    microBatchTokens: 64,
    slots: 8,
    positions: 64,
    ...where,
    ...options,
  });
  try {
    return await act(engine);
  } finally {
    await engine.close();
  }
}

const logProbs = async (engine: RunningEngine) => {
  const found = await engine.evaluate(BATCH, { temperature: 0.7, values: true });
  return found.flatMap((each) => Object.values(each).flatMap((numbers: Float32Array) => [...numbers]));
};
const respond = async (engine: RunningEngine) => {
  const prompts = BATCH.map(({ prompt }) => prompt);
  const options = { seeds: prompts.map((_, i) => i), temperature: 0, topP: 1, maxNewTokens: 12 };
  return (await engine.generate(prompts, options)).map(({ response }) => [...response]);
};
const step = async (engine: RunningEngine) => {
  const critic = await engine.updateCritic(BATCH, { ...STEP, valueClip: 0.5 });
  const policy = await engine.updatePolicy(BATCH, POLICY);
  return [...Object.values(critic), ...Object.values(policy)].map(Number);
};

/** The numbers of training, and the responses of a policy before and after it. */
const everything = async (engine: RunningEngine) => {
  const responses = await respond(engine);
  const numbers = [...(await logProbs(engine)), ...(await step(engine)), ...(await step(engine))];
  return { numbers: [...numbers, ...(await logProbs(engine))], responses: [...responses, ...(await respond(engine))] };
};

/** Bytes that each device and this process exchange while `act` runs. */
async function exchanged(count: number, act: () => Promise<unknown>) {
  for (let id = 0; id < count; id++) copiedBytes(id);
  await act();
  return Array.from({ length: count }, (_, id) => copiedBytes(id));
}

for (const [name, options] of Object.entries(TRAINED))
  for (const count of [2, 4])
    test(`${name} on ${count} GPUs has the log-probs, steps and changed weights of one GPU`, async () => {
      const one = await onDevices(1, options, everything);
      const several = await onDevices(count, options, everything);
      const worst = one.numbers.map((x, i) => Math.abs(x - several.numbers[i]!) / Math.max(1, Math.abs(x)));
      assert.equal(several.numbers.length, one.numbers.length);
      assert.ok(Math.max(...worst) <= TOLERANCE, `${Math.max(...worst)}`);
      assert.ok(new Set(one.responses.flat()).size > 10, "the model says something");
      // on CUDA the order of a product's sums depends on the number of rows
      const same = several.responses.filter((response, i) => response.join() === one.responses[i]!.join());
      assert.ok(same.length >= one.responses.length - 2, `${same.length} of ${one.responses.length} responses`);
    });

/** Small enough that bfloat16 would lose it: a weight of 0.1 has a resolution of 5e-4 there. */
const SMALL = { ...STEP, learningRate: 1e-6, microBatchSize: 1 };

for (const swaps of [false, true])
  test(`bfloat16${swaps ? ", one model on a GPU at a time" : ""}: weights and moments equal those of one GPU`, async () => {
    const trained = (count: number) =>
      onDevices(count, { compute: "bfloat16", offloads: true, swaps }, async (engine) => {
        const before = await logProbs(engine);
        for (let i = 0; i < 3; i++) {
          await engine.updateCritic(BATCH, { ...SMALL, valueClip: 0.5 });
          await engine.updatePolicy(BATCH, { ...POLICY, ...SMALL });
        }
        const directory = await mkdtemp(path.join(folder, "checkpoint-"));
        await engine.save(directory);
        for (let i = 0; i < 3; i++) await engine.updatePolicy(BATCH, { ...POLICY, learningRate: 0.01 });
        assert.notDeepEqual(await logProbs(engine), before);
        return directory;
      });
    const one = stateOf(await trained(1));
    const initial = readSafetensors(path.join(model, "model.safetensors"));
    const matrices = [...initial].filter(([name]) => isMultiplied(name));
    const moved = matrices.flatMap(([name, { data }]) => {
      const now = one.get(`policy: weight.${name}`)!;
      return [...data].map((x, i) => Math.abs(x - now[i]!));
    });
    assert.ok(
      Math.max(...moved) <= 4e-6 && moved.filter((x) => x > 1.5e-6).length > moved.length / 2,
      "all steps count",
    );
    for (const count of swaps ? [4] : [2, 8]) {
      const several = stateOf(await trained(count));
      for (const [name, numbers] of one)
        for (const [i, x] of several.get(name)!.entries())
          assert.ok(Math.abs(x - numbers[i]!) <= TOLERANCE, `${count} GPUs, ${name} ${i}: ${x}, not ${numbers[i]}`);
    }
  });

/** The float32 weights and moments of a checkpoint. */
function stateOf(directory: string): Map<string, Float32Array> {
  const read = (prefix: string, file: string) =>
    [...readSafetensors(path.join(directory, file))].map(([name, { data }]) => [`${prefix}${name}`, data] as const);
  return new Map([...read("policy: ", "policy-optimizer.safetensors"), ...read("critic ", "critic/model.safetensors")]);
}

for (const [name, options] of Object.entries({
  "": {},
  ", offloaded, one model at a time": { compute: "bfloat16", offloads: true, swaps: true } as const,
}))
  test(`Each GPU generates with the newest weights, with the log-probs of training${name}`, async () => {
    await onDevices(3, options, async (engine) => {
      await respond(engine);
      for (let i = 0; i < 3; i++) await engine.updatePolicy(BATCH, { ...POLICY, learningRate: 0.02 });
      const prompts = BATCH.map(({ prompt }) => prompt);
      const asked = { seeds: prompts.map((_, i) => i), temperature: 1, topP: 1, maxNewTokens: 12 };
      for (const weights of ["policy", "reference", "policy"] as const) {
        const responses = await engine.generate(prompts, { ...asked, weights });
        const sequences = responses.map(({ response }, i) => ({ prompt: prompts[i]!, response }));
        const trained = await engine.evaluate(sequences, { temperature: 1, values: true });
        const by = weights === "policy" ? "logProbs" : "referenceLogProbs";
        for (const [row, { logProbs }] of responses.entries())
          for (const [i, x] of logProbs.entries())
            assert.ok(Math.abs(x - trained[row]![by][i]!) < GENERATION_TOLERANCE, `${weights}, row ${row}: ${x}`);
      }
    });
  });

test("In a step each GPU exchanges its gradient and its part of the weights with the others", async () => {
  const count = 4;
  const { size } = layoutOf(parameters(CONFIG));
  await onDevices(count, {}, async (engine) => {
    await engine.initializeCritic(0);
    await engine.updatePolicy(BATCH, POLICY);
    const found = await exchanged(count, () => engine.updatePolicy(BATCH, POLICY));
    for (const { toDevice, toHost } of found) {
      const [sent, got] = [4 * (size + size / count), 4 * size];
      // micro-batches, their tokens' log-probs, norms and scalars go the same ways
      assert.ok(toHost >= sent && toHost < 1.1 * sent, `${toHost} bytes to the host, of ${sent}`);
      assert.ok(toDevice >= got && toDevice < 1.5 * got, `${toDevice} bytes to the device, of ${got}`);
    }
  });
});

test("Each of eight GPUs holds the model, reads micro-batches and generates, and needs no more than the first", async () => {
  const count = 8;
  const { counts } = await counting(() =>
    onDevices(count, {}, async (engine) => {
      await engine.initializeCritic(0);
      for (const act of [logProbs, step, respond]) {
        const found = await exchanged(count, () => act(engine));
        for (const [id, { toDevice, toHost }] of found.entries())
          assert.ok(toDevice > 0 && toHost > 0, `cuda:${id} has nothing to do in ${act.name}`);
      }
    }),
  );
  assert.equal(counts.peaks.length, count);
  for (const peak of counts.peaks) assert.ok(peak > 1e5 && peak <= 1.2 * counts.peaks[0]!, `${counts.peaks}`);
});

/** cudaErrorLaunchFailure, as after an Xid. */
const LAUNCH_FAILURE = 719;

for (const [phase, act] of Object.entries({ "log-probs": logProbs, "a step": step, generation: respond }))
  test(`A GPU that fails ends ${phase} with one line that names it, and with a status that restarts the learner`, async () => {
    await onDevices(3, {}, async (engine) => {
      await act(engine);
      failDevice(1, LAUNCH_FAILURE);
      await assert.rejects(act(engine), (error: Error & { code?: string }) => {
        assert.equal(error.code, "device", error.message);
        assert.match(error.message, /^cuda:1 cannot be used: it has failed \(CUDA failure 719: [^\n]*$/);
        assert.equal(exitStatusOf(error, "training", true), EXIT_STATUS.infrastructure);
        return true;
      });
    }).finally(() => failDevice(1, 0));
  });
