/**
 * `npm run bench gpu`: the engine on a GPU with Qwen2.5's shapes: log-probs, a policy step's gradient norm, log-probs after it and
 * greedy tokens against the CPU, then tokens per second and model FLOP utilisation of a PPO step (critic and policy) and of
 * generation, in turn with PyTorch and transformers on the same GPU (gpu_torch.py).
 *
 *     npm run bench gpu -- --peak-tflops N [--device cuda:0] [--train lora|all] [--compute float32|bfloat16]
 *                          [--shapes 0.5b,1.5b,3b] [--batch 8] [--prompt 512] [--response 512] [--no-peer]
 *
 * `--train all` trains every weight. Weights, gradients, moments, keys and values stay on the GPU (learner/ppo/device-trainable.ts);
 * with `--device cpu` the same calls are made here, and what comes of it is not kept.
 * `--peak-tflops` is what the GPU's data sheet says for the format that products are computed in.
 * Parity is of the smallest shape in float32, at 2 x 64 tokens.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Device, parseDevice } from "../../learner/graph/device.ts";
import type { ModelConfig } from "../../learner/model/config.ts";
import { SHAPES } from "../../learner/model/hollow.fixture.ts";
import { PROJECTIONS } from "../../learner/model/lora.ts";
import { elementCount, parameters } from "../../learner/model/weights.ts";
import { type RunningEngine, startEngine } from "../../learner/ppo/engine.ts";
import { uniforms } from "../../learner/rng.ts";
import { Asked } from "./asked.ts";
import { peerPython } from "./peers.ts";
import { writeRandomModel } from "./random-model.ts";
import { type Bench, type BenchResult, type Goal, median, UsageError } from "./result.ts";
import { SIZES } from "./update-work.ts";

const MODELS: Record<string, ModelConfig> = { ...SHAPES, ...SIZES };
export const ADAPTER = { rank: 16, alpha: 16, targets: PROJECTIONS, seed: 1 };
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

export type Sample = { prompt: Int32Array; response: Int32Array };

export function samples(config: ModelConfig, count: number, prompt: number, response: number): Sample[] {
  const next = uniforms(2, "tokens");
  const draw = (length: number) => Int32Array.from({ length }, () => Math.floor(config.vocabSize * next()));
  return Array.from({ length: count }, () => ({ prompt: draw(prompt), response: draw(response) }));
}

/** What both sides are given beside tokens. */
const PROXIMAL = -10;
const filled = (length: number, value: number) => new Float32Array(length).fill(value);
const advantageOf = (i: number) => (i % 2 === 0 ? 1 : -1);
const returnOf = (i: number) => (i % 3) - 1;

export async function policyStep(engine: RunningEngine, batch: Sample[]) {
  const policy = batch.map((sample, i) => ({
    ...sample,
    proximalLogProbs: filled(sample.response.length, PROXIMAL),
    advantages: filled(sample.response.length, advantageOf(i)),
    importance: filled(sample.response.length, 1),
    weight: 1,
  }));
  return engine.updatePolicy(policy, { ...STEP, microBatchSize: batch.length });
}

export async function criticStep(engine: RunningEngine, batch: Sample[]) {
  const critic = batch.map((sample, i) => ({
    ...sample,
    oldValues: filled(sample.response.length, 0),
    returns: filled(sample.response.length, returnOf(i)),
  }));
  return engine.updateCritic(critic, { ...STEP, valueClip: 0, microBatchSize: batch.length });
}

export const greedy = (engine: RunningEngine, batch: Sample[], maxNewTokens: number) =>
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
    found.push({ before, tokens, norm: (await policyStep(engine, batch)).gradientNorm, after: await logProbs() });
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

interface Speed {
  device: Device;
  trained: Trained;
  compute: "float32" | "bfloat16";
  /** operations a second */
  peak: number;
  count: number;
  prompt: number;
  response: number;
  rounds: number;
  peer: boolean;
}
/** Seconds, and losses of critic and policy before their steps. */
interface Round {
  step: number;
  generation: number;
  losses: number[];
}
const OURS = "longrun";
const PYTORCH = "PyTorch";
/** Of losses before the first step. */
const AGREEMENT = { float32: 1e-3, bfloat16: 3e-2 };

async function startPeer(folder: string, { device, trained }: Speed, compute: Speed["compute"]): Promise<Asked<Round>> {
  return Asked.start<Round>(PYTORCH, await peerPython(), [
    ...[fileURLToPath(new URL("./gpu_torch.py", import.meta.url)), "--folder", folder, "--compute", compute],
    ...["--device", device.kind === "cuda" ? `cuda:${device.id}` : "cpu", "--rank", String(ADAPTER.rank)],
    ...["--train", trained === TRAINED.lora ? "lora" : "all"],
  ]);
}

/** @throws unless the two sides did the same work */
function agree(losses: number[], ours: number[], compute: Speed["compute"]): void {
  const close = (loss: number, own: number) =>
    Math.abs(loss - own) <= AGREEMENT[compute] * Math.max(0.1, Math.abs(own));
  if (losses.every((loss, i) => close(loss, ours[i]!))) return;
  throw new Error(`${PYTORCH} does other work: losses of critic and policy are ${losses}, ours ${ours}`);
}

/** Rounds of both sides in turn. */
async function speed(folder: string, shape: string, config: ModelConfig, o: Speed): Promise<BenchResult["rows"]> {
  const batch = samples(config, o.count, o.prompt, o.response);
  await writeFile(
    path.join(folder, "work.json"),
    JSON.stringify({
      tokens: batch.map((sample) => [...sample.prompt, ...sample.response]),
      ...{ promptTokens: o.prompt, responseTokens: o.response, proximal: PROXIMAL, clipRatio: STEP.clipRatio },
      ...{ advantages: batch.map((_, i) => advantageOf(i)), returns: batch.map((_, i) => returnOf(i)) },
      ...{ learningRate: STEP.learningRate, gradientClip: STEP.gradientClip },
    }),
  );
  const microBatchTokens = o.count * (o.prompt + o.response);
  const compute = o.device.kind === "cuda" ? o.compute : "float32"; // ONNX Runtime has the other on CUDA alone
  const where = { device: o.device, microBatchTokens, resident: true, compute };
  const engine = await startEngine({ model: folder, threads: 0, ...o.trained.engine, ...where });
  const seconds = async (once: () => Promise<unknown>) => {
    const start = performance.now();
    await once();
    return (performance.now() - start) / 1000;
  };
  const ours = async (): Promise<Round> => {
    const losses: number[] = [];
    const step = await seconds(async () => {
      losses.push((await criticStep(engine, batch)).loss);
      losses.push((await policyStep(engine, batch)).loss);
    });
    return { step, generation: await seconds(() => greedy(engine, batch, o.response)), losses };
  };
  const twin = o.peer ? await startPeer(folder, o, compute) : undefined;
  try {
    const sides: [string, () => Promise<Round>][] = [[OURS, ours]];
    if (twin) sides.push([PYTORCH, () => twin.ask()]);
    const first: Round[] = [];
    for (const [, ask] of sides) first.push(await ask()); // makes sessions
    for (const { losses } of first) agree(losses, first[0]!.losses, compute);
    const measured = sides.map((): Round[] => []);
    for (let round = 0; round < o.rounds; round++)
      for (const [i, [, ask]] of sides.entries()) measured[i]!.push(await ask());
    const work = workOf(config, o);
    return (["step", "generation"] as const).flatMap((what) => {
      const taken = measured.map((found) => median(found.map((round) => round[what])));
      return sides.map(([side], i) => ({
        ...{ shape, what: what === "step" ? "PPO step" : what, side, seconds: taken[i]!.toFixed(3) },
        "tokens/s": Math.round(work[what].tokens / taken[i]!),
        "FLOP utilisation": `${((100 * work[what].operations) / taken[i]! / o.peak).toFixed(1)} %`,
        ratio: i === 0 ? "" : `${(taken[i]! / taken[0]!).toFixed(2)}x`,
      }));
    });
  } finally {
    twin?.close();
    await engine.close();
  }
}

/** Tokens, and operations of the model's matrices; those that make logits see response tokens alone, and the critic has none. */
function workOf(config: ModelConfig, { count, prompt, response, trained }: Speed) {
  const table = config.vocabSize * config.hiddenSize;
  const size = parameters(config).reduce((total, { shape }) => total + elementCount(shape), 0);
  const layers = size - (config.tied ? 1 : 2) * table;
  const tokens = count * (prompt + response);
  const logits = table * count * response;
  return {
    step: { tokens, operations: trained.operations * (2 * layers * tokens + logits) },
    generation: { tokens: count * response, operations: 2 * (layers * tokens + logits) },
  };
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
      compute: { type: "string", default: "float32" },
      "no-peer": { type: "boolean", default: false },
      "peak-tflops": { type: "string" },
    },
  });
  const device = parseDevice(values.device);
  const peak = Number(values["peak-tflops"]) * 1e12;
  if (device === "auto" || !(peak > 0))
    throw new UsageError("give --device cuda:N and --peak-tflops of the GPU's data sheet");
  const trained = TRAINED[values.train as keyof typeof TRAINED];
  if (!trained)
    throw new UsageError(`--train: there is no ${values.train}; there are ${Object.keys(TRAINED).join(", ")}`);
  const [count, prompt, response] = [values.batch, values.prompt, values.response].map(Number) as [
    number,
    number,
    number,
  ];
  const { compute } = values;
  if (compute !== "float32" && compute !== "bfloat16")
    throw new UsageError(`--compute is ${compute}; give float32 or bfloat16`);
  const [rounds, peer] = [Number(values.rounds), !values["no-peer"]];
  const rows: BenchResult["rows"] = [];
  const goals: Goal[] = [];
  for (const [index, shape] of values.shapes.split(",").entries()) {
    const config = MODELS[shape];
    if (!config) throw new UsageError(`--shapes: there is no ${shape}; there are ${Object.keys(MODELS).join(", ")}`);
    const folder = await mkdtemp(path.join(os.tmpdir(), "longrun-gpu-"));
    try {
      writeRandomModel(folder, config, "BF16");
      if (index === 0) goals.push(...(await parity(folder, config, device, trained)));
      rows.push(
        ...(await speed(folder, shape, config, {
          device,
          trained,
          compute,
          peak,
          count,
          prompt,
          response,
          rounds,
          peer,
        })),
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  }
  const method = `${values.device}, ${trained.name}, products in ${compute}, bfloat16 files, ${count} x ${prompt} + ${response} tokens, medians of ${values.rounds}; attention's own operations are not counted`;
  const rehearsed = process.env.REHEARSAL_FOLDER !== undefined; // ../rehearsal: nothing was computed
  return { rows, goals, method, raw: { flags }, kept: device.kind === "cuda" && !rehearsed };
}

export const gpu: Bench = { about: "the engine on a GPU: parity with the CPU, speed, FLOP utilisation", run };
