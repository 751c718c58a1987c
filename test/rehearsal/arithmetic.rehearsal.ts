/**
 * ONNX Runtime's CUDA provider must compute the same as its CPU provider, if the stand-in does the arithmetic of each kernel: the provider
 * runs the intended graph, with each operand in its place.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import test, { after, before } from "node:test";
import type { Remote } from "../../learner/engine/calls.ts";
import {
  type EngineOptions,
  type LogProbs,
  type RunningEngine,
  type Sequence,
  startEngine,
} from "../../learner/engine/engine.ts";
import { EngineWorker } from "../../learner/engine/engine-worker.ts";
import { mergeFolder } from "../../learner/engine/model/convert.ts";
import { VOCABULARY_CHUNK } from "../../learner/engine/model/token-log-probs.ts";
import type { Device } from "../../learner/engine/runtime/device.ts";
import { randomSamples } from "../../learner/engine/samples.fixture.ts";
import { Trainer } from "../../learner/engine/trainer.ts";
import type { StartWorker } from "../../learner/engine/workers.ts";
import { ADAPTER } from "../bench/gpu.ts";
import { kernels } from "./counts.ts";
import { assertNear, QWEN2, writeModel } from "./small-models.ts";

process.env.REHEARSAL_ARITHMETIC = "1"; // read when the library is loaded, with the first session on a device

const MODELS = {
  qwen2: QWEN2,
  qwen3: { ...QWEN2, modelType: "qwen3" as const, queryKeyNorm: true, queryKeyValueBias: false, tied: false },
  /** A model whose logits come in two whole chunks and a small one; its file is bfloat16. */
  /** Head sizes that attention takes directly: queries, keys and values are passed joined; bfloat16 in its file. */
  "whole heads": { ...QWEN2, heads: 2, keyValueHeads: 1, headSize: 16 },
  /** Sizes that every kernel of our own takes, in two kinds of files. */
  fused: {
    ...{ ...QWEN2, hiddenSize: 128, heads: 2, keyValueHeads: 1, headSize: 64, vocabSize: 112 },
    initializerRange: 0.05,
  },
  /** Sizes that every kernel of generation takes, and a head size of which the stand-in has ONNX Runtime's attention. */
  "fused generation": {
    ...{ ...QWEN2, hiddenSize: 128, heads: 4, keyValueHeads: 2, headSize: 32, vocabSize: 112 },
    initializerRange: 0.1,
  },
  /** The same with a bias of o_proj. */
  "fused generation, biased": {
    ...{ ...QWEN2, modelType: "llama" as const, outputBias: true, hiddenSize: 128, heads: 4, keyValueHeads: 2 },
    ...{ headSize: 32, vocabSize: 112, initializerRange: 0.1 },
  },
  /** Beside keys and values in bfloat16, products of float16 matrices are float32. */
  float16: { ...QWEN2, heads: 2, keyValueHeads: 1, headSize: 16 },
  "large vocabulary": { ...QWEN2, layers: 1, hiddenSize: 16, headSize: 4, vocabSize: 2 * VOCABULARY_CHUNK + 33 },
};
/** Relative for numbers above 1. Sums are in another order. */
const TOLERANCE = 1e-5;
/** A bfloat16 has 8 bits, and operands of products are rounded to it; 0.009 was measured for a gradient's norm. */
const BFLOAT16_TOLERANCE = 0.02;

const dtypeOf = (name: string) => (name === "float16" ? "F16" : name.startsWith("qwen") ? "F32" : "BF16");
let folder: string;
before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), "longrun-arithmetic-"));
  for (const [name, config] of Object.entries(MODELS)) writeModel(path.join(folder, name), config, dtypeOf(name));
});
after(() => rm(folder, { recursive: true }));

/** Returns the results of `act` with an engine on the CPU, and with one on a GPU. */
async function onBoth<T>(
  model: keyof typeof MODELS,
  options: Partial<EngineOptions>,
  act: (engine: RunningEngine) => Promise<T>,
): Promise<[cpu: T, cuda: T]> {
  const found: T[] = [];
  for (const device of [{ kind: "cpu" }, { kind: "cuda", id: 0 }] as Device[]) {
    const engine = await startEngine({
      ...{ model: path.join(folder, model), threads: 1, device, ...options },
      ...(device.kind === "cpu" && { compute: "float32" }), // ONNX Runtime multiplies bfloat16 on CUDA only
    });
    try {
      found.push(await act(engine));
    } finally {
      await engine.close();
    }
  }
  return found as [T, T];
}

const ADAM = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01 };
const STEP = {
  learningRate: 0.001,
  gradientClip: 1,
  adam: ADAM,
  aggregation: "SeqMeanTokenMean",
  microBatchSize: 4,
} as const;
const POLICY = { ...STEP, temperature: 0.8, clipRatio: 0.2, dualClip: 3, entropyCoefficient: 0.01, klCoefficient: 0.1 };

async function logProbs(engine: Pick<RunningEngine, "evaluate">, batch: Sequence[]) {
  const evaluated = await engine.evaluate(batch, { temperature: 0.7, values: true });
  const all = (name: keyof LogProbs) => evaluated.flatMap((it) => [...it[name]]);
  return {
    logProbs: all("logProbs"),
    entropies: all("entropies"),
    references: all("referenceLogProbs"),
    values: all("values"),
  };
}

/** Returns a step's loss, gradient norm and figures. */
const numbersOf = (result: object): Record<string, number[]> =>
  Object.fromEntries(Object.entries(result).map(([name, value]) => [name, [Number(value)]]));

const LORA = { adapter: ADAPTER };
const RECOMPUTED = { activationCheckpointing: "Always" } as const;
const CASES: [model: keyof typeof MODELS, name: string, options: Partial<EngineOptions>, tolerance: number][] = [
  ["qwen2", "LoRA", LORA, TOLERANCE],
  ["qwen2", "every weight", {}, TOLERANCE],
  ["qwen2", "LoRA, layers recomputed", { ...LORA, ...RECOMPUTED }, TOLERANCE],
  ["qwen2", "every weight, layers recomputed", RECOMPUTED, TOLERANCE],
  ["qwen2", "LoRA, bfloat16", { ...LORA, compute: "bfloat16" }, BFLOAT16_TOLERANCE],
  ["qwen2", "every weight, bfloat16", { compute: "bfloat16" }, BFLOAT16_TOLERANCE],
  ["fused", "LoRA, bfloat16", { ...LORA, compute: "bfloat16" }, BFLOAT16_TOLERANCE],
  ["fused", "every weight, bfloat16", { compute: "bfloat16" }, BFLOAT16_TOLERANCE],
  ["fused", "LoRA, bfloat16, layers recomputed", { ...LORA, ...RECOMPUTED, compute: "bfloat16" }, BFLOAT16_TOLERANCE],
  ["fused", "every weight, bfloat16, layers recomputed", { ...RECOMPUTED, compute: "bfloat16" }, BFLOAT16_TOLERANCE],
  ["qwen3", "LoRA, layers recomputed", { ...LORA, ...RECOMPUTED }, TOLERANCE],
  ["large vocabulary", "LoRA", LORA, TOLERANCE],
  ["large vocabulary", "every weight, layers recomputed", RECOMPUTED, TOLERANCE],
];

/** Kernels of our own that a step with every operator fused launches. */
const FUSED = [
  ...["attention_forward", "attention_delta", "attention_backward_kv", "attention_backward_q"],
  ...["norm_forward", "norm_backward", "swiglu_forward", "swiglu_backward", "rotary_turn"],
  ...["head_forward", "head_combine", "head_backward"],
];

for (const [model, name, options, tolerance] of CASES)
  test(`${model}, ${name}: log-probs, two steps of critic and policy, and the changed weights equal the CPU's`, async () => {
    const batch = randomSamples(MODELS[model].vocabSize, 6);
    if (model === "fused") kernels();
    const [cpu, cuda] = await onBoth(model, options, async (engine) => {
      await engine.initializeCritic(0.5);
      const found = { before: await logProbs(engine, batch), steps: [] as Record<string, number[]>[], after: {} };
      for (let step = 0; step < 2; step++) {
        found.steps.push(numbersOf(await engine.updateCritic(batch, { ...STEP, valueClip: 0.5 })));
        found.steps.push(numbersOf(await engine.updatePolicy(batch, POLICY)));
      }
      found.after = await logProbs(engine, batch);
      return found;
    });
    assert.ok(new Set(cpu.before.logProbs).size > 10, "the model says something");
    assertNear(cuda.before, cpu.before, tolerance);
    for (const [i, step] of cpu.steps.entries()) assertNear(cuda.steps[i]!, step, tolerance);
    assertNear(cuda.after, cpu.after, tolerance);
    if (model !== "fused") return;
    const ran = new Set(kernels().map(([kernel]) => kernel));
    const trains = options.adapter ? ["downs_forward", "downs_input", "downs_matrices"] : ["embedding_gradient"];
    for (const each of [...FUSED, ...trains]) assert.ok(ran.has(each), `${each} was launched`);
  });

test("Passes without padding, of whatever rows: as few as rows allow, the CPU's numbers, and the same bits again", async () => {
  const batch = randomSamples(MODELS.fused.vocabSize, 14, 3);
  const tokens = 120;
  const options = { ...LORA, compute: "bfloat16", microBatchTokens: tokens } as const;
  let passes = 0;
  const train = async (engine: RunningEngine) => {
    await engine.initializeCritic(0.5);
    kernels();
    const before = await logProbs(engine, batch);
    const [, launches = 0] = kernels().find(([name]) => name === "attention_forward") ?? [];
    passes = launches / MODELS.fused.layers / 2; // of the policy and of the critic
    const steps = [
      numbersOf(await engine.updateCritic(batch, { ...STEP, valueClip: 0.5 })),
      numbersOf(await engine.updatePolicy(batch, POLICY)),
    ];
    return { before, steps, after: await logProbs(engine, batch) };
  };
  const [cpu, cuda] = await onBoth("fused", options, train);
  const [, again] = await onBoth("fused", options, train);
  const prompts = Map.groupBy(batch, ({ prompt }) => prompt.join());
  const total = [...prompts.values()].reduce((sum, [first]) => sum + first!.prompt.length - 1, 0);
  const responses = batch.reduce((sum, { response }) => sum + response.length, 0);
  assert.equal(passes, Math.ceil((total + responses) / tokens), `${total + responses} tokens`);
  assert.deepEqual(again, cuda);
  assertNear(cuda.before, cpu.before, BFLOAT16_TOLERANCE);
  for (const [i, step] of cpu.steps.entries()) assertNear(cuda.steps[i]!, step, BFLOAT16_TOLERANCE);
  assertNear(cuda.after, cpu.after, BFLOAT16_TOLERANCE);
});

test("Graphs with kernels take padded rows, too, as they get them beside a GPU without kernels", async () => {
  const batch = randomSamples(MODELS.fused.vocabSize, 6);
  const found = [];
  for (const packs of [true, false]) {
    const start: StartWorker = (options) => {
      const worker = new EngineWorker(options);
      const call = (method: keyof EngineWorker, given: never[]) =>
        method === "packs" ? packs : (worker[method] as (...given: never[]) => unknown)(...given);
      const get =
        (_: object, method: keyof EngineWorker) =>
        async (...given: never[]) =>
          call(method, given);
      return new Proxy({}, { get }) as Remote<EngineWorker>;
    };
    const options = { model: path.join(folder, "fused"), threads: 1, device: { kind: "cuda", id: 0 } } as const;
    const trainer = new Trainer({ ...options, ...LORA, compute: "bfloat16" }, undefined, start);
    await trainer.initializeCritic(0.5);
    found.push(await logProbs(trainer, batch));
    await trainer.close();
  }
  assertNear(found[1]!, found[0]!, BFLOAT16_TOLERANCE);
});

/** Kernels of our own that a decode step with LoRA launches. */
const GENERATES = ["norm_forward", "norm_adapted", "swiglu_joined", "linear_adapted", "head_logits"];

/** For a log-prob: on CUDA keys and values are bfloat16, and with bfloat16 weights operands of products, too; 0.02 was measured. */
const GENERATION_TOLERANCE = 0.06;

for (const [name, model, options] of [
  ["LoRA", "qwen2", LORA],
  ["LoRA beside bfloat16 files, in parts", "large vocabulary", LORA],
  ["LoRA beside bfloat16 files", "whole heads", LORA],
  [
    "LoRA of some layers",
    "whole heads",
    { adapter: { ...ADAPTER, targets: ["k_proj", "v_proj", "up_proj", "down_proj"] } },
  ],
  ["LoRA, by kernels of our own", "fused generation", LORA],
  [
    "LoRA of some layers, by kernels of our own",
    "fused generation",
    { adapter: { ...ADAPTER, targets: ["k_proj", "up_proj", "down_proj"] } },
  ],
  ["LoRA beside biases, by kernels of our own", "fused generation, biased", LORA],
  ["LoRA beside float16 files", "float16", LORA],
  ["every weight", "qwen2", {}],
  ["every weight, with norms of queries and keys", "qwen3", {}],
] as const)
  test(`${name}: responses begin like the CPU's, and their log-probs equal the same tokens' log-probs in training`, async () => {
    const batch = randomSamples(MODELS[model].vocabSize, 6);
    const isFused = model.startsWith("fused generation");
    kernels();
    const [cpu, cuda] = await onBoth(model, options, async (engine) => {
      await engine.updatePolicy(batch, POLICY);
      const prompts = batch.flatMap(({ prompt }) => [prompt, prompt]); // the second prompt is copied within the cache
      const maxNewTokens = isFused ? 6 : 24; // its PTX is executed slowly
      const common = { seeds: prompts.map((_, i) => i), temperature: 1, topP: 1, maxNewTokens };
      const found = [];
      for (const [how, asked] of Object.entries({
        greedy: { temperature: 0 },
        sampled: { slots: 5 },
        "most probable": { topP: 0.7 },
        reference: { weights: "reference" as const },
      })) {
        const responses = await engine.generate(prompts, { ...common, ...asked });
        const sequences = responses.map(({ response }, i) => ({ prompt: prompts[i]!, response }));
        const trained = await engine.evaluate(sequences as Sequence[], { temperature: 1, values: false });
        const by = how === "reference" ? "referenceLogProbs" : "logProbs";
        found.push({ how, responses, trained: trained.map((each) => each[by]) });
      }
      return found;
    });
    const ran = new Set(kernels().map(([kernel]) => kernel));
    if (isFused) for (const each of GENERATES) assert.ok(ran.has(each), `${each} was launched`);
    for (const [i, { how, responses, trained }] of cuda.entries()) {
      for (const [row, { logProbs }] of responses.entries())
        assertNear({ [how]: logProbs }, { [how]: trained[row]! }, GENERATION_TOLERANCE);
      const same = responses.filter(({ response }, row) => response[0] === cpu[i]!.responses[row]!.response[0]);
      // a token at the edge of the nucleus may be in it on one side only, which changes the drawn tokens
      const enough = how === "most probable" ? responses.length / 3 : responses.length - 1;
      assert.ok(same.length >= enough, `${how}: ${same.length} of ${responses.length} begin as the CPU's`);
      for (const [row, { logProbs }] of cpu[i]!.responses.entries())
        assertNear({ [how]: logProbs }, { [how]: cpu[i]!.trained[row]! }, 1e-4);
    }
    assert.ok(
      new Set(cpu[1]!.responses.flatMap(({ response }) => [...response])).size > 10,
      "the model says something",
    );
  });

for (const [name, options] of Object.entries({ LoRA: LORA, "every weight": {} }))
  test(`${name}: after steps, generated rows of other lengths have the log-probs of the newest weights`, async () => {
    const batch = randomSamples(QWEN2.vocabSize, 6);
    const device = { kind: "cuda", id: 0 } as const;
    const engine = await startEngine({ model: path.join(folder, "qwen2"), threads: 1, device, slots: 8, ...options });
    const how = { temperature: 1, topP: 1, eosIds: [] };
    await engine.initializeCritic(0);
    for (const [round, rows] of [24, 24, 9, 24].entries()) {
      const prompts = Array.from({ length: rows }, (_, row) =>
        Int32Array.from(
          { length: 3 + ((row * 5 + round) % 11) },
          (_, i) => (row * 3 + i * 7 + round) % QWEN2.vocabSize,
        ),
      );
      const maxNewTokens = [12, 20, 6, 9][round]!;
      const responses = await engine.generate(prompts, { ...how, seeds: [...prompts.keys()], maxNewTokens });
      const written = responses.map(({ response }, i) => ({ prompt: prompts[i]!, response }));
      const trained = await engine.evaluate(written, { temperature: 1, values: false, reference: false });
      for (const [row, { logProbs }] of responses.entries())
        assertNear(
          { [`${round}, ${row}`]: logProbs },
          { [`${round}, ${row}`]: trained[row]!.logProbs },
          GENERATION_TOLERANCE,
        );
      for (let step = 0; step < 2; step++) await engine.updatePolicy(batch, { ...POLICY, learningRate: 0.05 });
    }
    await engine.close();
  });

test("The CPU loads a checkpoint that a GPU wrote, and a GPU one of the CPU; the next step is the same", async () => {
  const batch = randomSamples(QWEN2.vocabSize, 6);
  const written: string[] = [];
  await onBoth("qwen2", LORA, async (engine) => {
    await engine.initializeCritic(0.5);
    await engine.updateCritic(batch, { ...STEP, valueClip: 0.5 });
    await engine.updatePolicy(batch, POLICY);
    written.push(await mkdtemp(path.join(folder, "checkpoint-")));
    await engine.save(written.at(-1)!);
  });
  const readers = written.reverse(); // the CPU reads what the GPU wrote
  const [cpu, cuda] = await onBoth("qwen2", LORA, async (engine) => {
    await engine.load(readers.shift()!);
    const before = await logProbs(engine, batch);
    const step = numbersOf(await engine.updatePolicy(batch, POLICY));
    return { before, step, after: await logProbs(engine, batch) };
  });
  for (const when of ["before", "step", "after"] as const) assertNear(cuda[when], cpu[when], TOLERANCE);
});

test("An adapter that a GPU trained keeps its log-probs when it is merged into its model", async () => {
  const batch = randomSamples(QWEN2.vocabSize, 6);
  const checkpoint = await mkdtemp(path.join(folder, "checkpoint-"));
  const model = path.join(folder, "qwen2");
  const device = { kind: "cuda", id: 0 } as const;
  const policyOf = async (options: EngineOptions, act: (engine: RunningEngine) => Promise<unknown>) => {
    const engine = await startEngine(options);
    try {
      await act(engine);
      const { logProbs: policy, references } = await logProbs(engine, batch);
      return { policy, references };
    } finally {
      await engine.close();
    }
  };
  const trained = await policyOf({ model, threads: 1, device, ...LORA }, async (engine) => {
    await engine.initializeCritic(0);
    for (let step = 0; step < 3; step++) await engine.updatePolicy(batch, { ...POLICY, learningRate: 0.01 });
    await engine.save(checkpoint);
  });
  const merged = path.join(folder, "merged");
  mergeFolder(model, path.join(checkpoint, "policy"), merged, { dtype: "F32" });
  const found = await policyOf({ model: merged, threads: 1, device }, (engine) => engine.initializeCritic(0));
  assertNear({ policy: found.policy }, { policy: trained.policy }, TOLERANCE);
  const moved = trained.policy.map((value, i) => Math.abs(value - trained.references[i]!));
  assert.ok(Math.max(...moved) > 0.01, "the adapter was trained");
});
