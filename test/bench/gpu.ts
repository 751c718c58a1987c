/**
 * `npm run bench gpu`: the engine on a GPU with Qwen2.5's shapes: log-probs, a policy step's gradient norm, log-probs after it and
 * greedy tokens against the CPU, then tokens per second and model FLOP utilisation of a PPO step and of generation.
 *
 *     npm run bench gpu -- --peak-tflops N [--device cuda:0] [--train lora|all] [--shapes 0.5b,1.5b,3b] [--batch 8]
 *                          [--prompt 512] [--response 512]
 *
 * `--train all` trains every weight. Weights, gradients, moments, keys and values stay on the GPU (learner/ppo/device-trainable.ts);
 * with `--device cpu` the same calls are made here, and what comes of it is not kept.
 * `--peak-tflops` is what the GPU's data sheet says for the format that products are computed in (float32 for now; TF32 where
 * NVIDIA_TF32_OVERRIDE is not 0). Parity is of the smallest shape, at 2 x 64 tokens. Set NVIDIA_TF32_OVERRIDE=0 for it.
 */
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { type Device, parseDevice } from "../../learner/graph/device.ts";
import type { ModelConfig } from "../../learner/model/config.ts";
import { SHAPES } from "../../learner/model/hollow.fixture.ts";
import { PROJECTIONS } from "../../learner/model/lora.ts";
import { elementCount, parameters } from "../../learner/model/weights.ts";
import { type RunningEngine, startEngine } from "../../learner/ppo/engine.ts";
import { uniforms } from "../../learner/rng.ts";
import { writeRandomModel } from "./random-model.ts";
import { type Bench, type BenchResult, type Goal, median } from "./result.ts";
import { SIZES } from "./update-work.ts";

const MODELS: Record<string, ModelConfig> = { ...SHAPES, ...SIZES };
const ADAPTER = { rank: 16, alpha: 16, targets: PROJECTIONS, seed: 1 };
const STEP = {
  ...{
    learningRate: 1e-4,
    gradientClip: 1,
    aggregation: "TokenMean" as const,
    temperature: 1,
    clipRatio: 0.2,
    dualClip: 0,
  },
  ...{ entropyCoefficient: 0, adam: { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0 } },
};
/** Of log-probs and, relative, of gradient norms: products in float32 are summed in another order. */
const PARITY = 1e-3;

type Sample = { prompt: Int32Array; response: Int32Array };

function samples(config: ModelConfig, count: number, prompt: number, response: number): Sample[] {
  const next = uniforms(2, "tokens");
  const draw = (length: number) => Int32Array.from({ length }, () => Math.floor(config.vocabSize * next()));
  return Array.from({ length: count }, () => ({ prompt: draw(prompt), response: draw(response) }));
}

async function step(engine: RunningEngine, batch: Sample[]): Promise<number> {
  const filled = (length: number, value: number) => new Float32Array(length).fill(value);
  const policy = batch.map((sample, i) => ({
    ...sample,
    proximalLogProbs: filled(sample.response.length, -10),
    advantages: filled(sample.response.length, i % 2 === 0 ? 1 : -1),
    importance: filled(sample.response.length, 1),
    weight: 1,
  }));
  return (await engine.updatePolicy(policy, { ...STEP, microBatchSize: batch.length })).gradientNorm;
}

const greedy = (engine: RunningEngine, batch: Sample[], maxNewTokens: number) =>
  engine.generate(
    batch.map(({ prompt }) => prompt),
    { seeds: batch.map((_, i) => i), temperature: 0, topP: 1, maxNewTokens },
  );

/** What is trained, and the operations of a step on a token for each weight. */
const TRAINED = {
  // forward and backward through a frozen trunk: two products of each matrix with every token, no gradient of it
  lora: { engine: { adapter: ADAPTER }, operations: 4, name: `LoRA of rank ${ADAPTER.rank}` },
  all: { engine: {}, operations: 6, name: "every weight trained" },
};
type Trained = (typeof TRAINED)[keyof typeof TRAINED];

async function parity(folder: string, config: ModelConfig, device: Device, trained: Trained): Promise<Goal[]> {
  const batch = samples(config, 2, 32, 32);
  const found = [];
  for (const place of [{ kind: "cpu" } as const, device]) {
    const resident = place === device;
    const engine = await startEngine({ model: folder, threads: 0, ...trained.engine, device: place, resident });
    const logProbs = async () => {
      const evaluated = await engine.evaluate(batch, { temperature: 1, values: false });
      return evaluated.flatMap((sample) => [...sample.logProbs]);
    };
    const before = await logProbs();
    const tokens = (await greedy(engine, batch, 32)).map(({ response }) => [...response]);
    found.push({ before, tokens, norm: await step(engine, batch), after: await logProbs() });
    await engine.close();
  }
  const [cpu, gpu] = found as [(typeof found)[0], (typeof found)[0]];
  const difference = (when: "before" | "after") =>
    Math.max(...cpu[when].map((value, i) => Math.abs(value - gpu[when][i]!)));
  const norms = Math.abs(cpu.norm - gpu.norm) / cpu.norm;
  const same = JSON.stringify(cpu.tokens) === JSON.stringify(gpu.tokens);
  const goal = `<= ${PARITY}`;
  return [
    ...(["before", "after"] as const).map((when) => ({
      ...{ what: `log-probs ${when} a step against the CPU`, goal },
      ...{ measured: difference(when).toExponential(1), met: difference(when) <= PARITY },
    })),
    { what: "gradient norm against the CPU, relative", goal, measured: norms.toExponential(1), met: norms <= PARITY },
    { what: "greedy tokens against the CPU", goal: "the same", measured: same ? "the same" : "others", met: same },
  ];
}

async function run(flags: string[]): Promise<BenchResult> {
  const { values } = parseArgs({
    args: flags,
    options: {
      device: { type: "string", default: "cuda:0" },
      train: { type: "string", default: "lora" },
      shapes: { type: "string", default: "0.5b,1.5b,3b" },
      batch: { type: "string", default: "8" },
      prompt: { type: "string", default: "512" },
      response: { type: "string", default: "512" },
      rounds: { type: "string", default: "3" },
      "peak-tflops": { type: "string" },
    },
  });
  const device = parseDevice(values.device);
  const peak = Number(values["peak-tflops"]) * 1e12;
  if (device === "auto" || !(peak > 0))
    throw new Error("give --device cuda:N and --peak-tflops of the GPU's data sheet");
  const trained = TRAINED[values.train as keyof typeof TRAINED];
  if (!trained) throw new Error(`--train: there is no ${values.train}; there are ${Object.keys(TRAINED).join(", ")}`);
  const [count, prompt, response] = [values.batch, values.prompt, values.response].map(Number) as [
    number,
    number,
    number,
  ];
  const rows: BenchResult["rows"] = [];
  const goals: Goal[] = [];
  for (const [index, shape] of values.shapes.split(",").entries()) {
    const config = MODELS[shape];
    if (!config) throw new Error(`--shapes: there is no ${shape}; there are ${Object.keys(MODELS).join(", ")}`);
    const folder = await mkdtemp(path.join(os.tmpdir(), "longrun-gpu-"));
    try {
      writeRandomModel(folder, config, "BF16");
      if (index === 0) goals.push(...(await parity(folder, config, device, trained)));
      const batch = samples(config, count, prompt, response);
      const microBatchTokens = count * (prompt + response);
      const where = { device, microBatchTokens, resident: true };
      const engine = await startEngine({ model: folder, threads: 0, ...trained.engine, ...where });
      const size = parameters(config).reduce((total, { shape: of }) => total + elementCount(of), 0);
      const work: [string, number, number, () => Promise<unknown>][] = [
        ["policy step", microBatchTokens, trained.operations * size * microBatchTokens, () => step(engine, batch)],
        ["generation", count * response, 2 * size * count * (prompt + response), () => greedy(engine, batch, response)],
      ];
      for (const [what, tokens, operations, once] of work) {
        await once(); // makes the session
        const seconds: number[] = [];
        for (let round = 0; round < Number(values.rounds); round++) {
          const start = performance.now();
          await once();
          seconds.push((performance.now() - start) / 1000);
        }
        const taken = median(seconds);
        rows.push({
          ...{ shape, what, seconds: taken.toFixed(3), "tokens/s": Math.round(tokens / taken) },
          "FLOP utilisation": `${((100 * operations) / taken / peak).toFixed(1)} %`,
        });
      }
      await engine.close();
    } finally {
      await rm(folder, { recursive: true });
    }
  }
  const method = `${values.device}, ${trained.name}, bfloat16 files, ${count} x ${prompt} + ${response} tokens, medians of ${values.rounds}; attention's own operations are not counted`;
  return { rows, goals, method, raw: { flags }, kept: device.kind === "cuda" };
}

export const gpu: Bench = { about: "the engine on a GPU: parity with the CPU, speed, FLOP utilisation", run };
