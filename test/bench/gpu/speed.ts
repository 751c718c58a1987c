/**
 * Tokens per second and FLOP utilisation of a PPO step (critic and policy) and of generation, in turn with PyTorch and transformers on the
 * same GPU (../gpu_torch.py), if a Python has both. Neither side recomputes layers. The memory plan limits a batch to half of the
 * device's free memory; PyTorch has the other half.
 */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { hostMemory } from "../../../learner/engine/available-memory.ts";
import { type ComputeFormat, type RunningEngine, startEngine } from "../../../learner/engine/engine.ts";
import { fitRun } from "../../../learner/engine/fit.ts";
import type { ModelConfig } from "../../../learner/engine/model/config.ts";
import { elementCount, parameters } from "../../../learner/engine/model/weights.ts";
import { deviceName } from "../../../learner/engine/runtime/device.ts";
import { graphCompute } from "../../../learner/engine/sessions.ts";
import { Asked } from "../asked.ts";
import { torchPython } from "../peers.ts";
import { writeRandomModel } from "../random-model.ts";
import { median } from "../result.ts";
import { memoryReader, modelName, peakOperations, REHEARSED } from "./device.ts";
import { type Finding, findingsOf, type PartOptions } from "./part.ts";
import {
  ADAPTER,
  advantageOf,
  criticStep,
  formatsOf,
  MODELS,
  PROXIMAL,
  policyStep,
  returnOf,
  type Sample,
  STEP,
  samples,
  TRAINED,
  type Trained,
} from "./work.ts";

interface Work {
  name: string;
  config: ModelConfig;
  /** Most sequences of a step and of generation. */
  batch: number;
  prompt: number;
  response: number;
  newTokens: number;
  rounds: number;
}

const WORK: Work = {
  ...{ name: "0.5b", config: MODELS["0.5b"], batch: 8, prompt: 512, response: 512 },
  ...{ newTokens: 128, rounds: 3 },
};
const SMALL_WORK: Work = {
  ...{ name: "quickstart", config: MODELS.quickstart, batch: 2, prompt: 32, response: 32 },
  ...{ newTokens: 32, rounds: 1 },
};

/** One measurement: seconds, and losses of critic and policy before their steps. */
interface Round {
  step: number;
  generation: number;
  losses: number[];
}
const OURS = "longrun";
const PYTORCH = "PyTorch";
/** Largest relative difference between both sides' losses before the first step. */
const AGREEMENT: Record<ComputeFormat, number> = { float32: 1e-3, tf32: 1e-2, bfloat16: 3e-2 };
const LEAST_LOSS = 0.1;

interface Case {
  work: Work;
  trained: Trained;
  compute: ComputeFormat;
  /** Operations per second by the data sheet; undefined if the device is not in the table. */
  peak: number | undefined;
  python: string | undefined;
}

export async function* speed(options: PartOptions): AsyncGenerator<Finding> {
  const { device, small, folder } = options;
  const work = small ? SMALL_WORK : WORK;
  const name = modelName(device);
  const python = REHEARSED ? { missing: "PyTorch is not rehearsed: ours alone" } : torchPython(device.kind === "cuda");
  const known = peakOperations(name, "float32") !== undefined;
  yield {
    notes: [
      `${work.prompt} + ${work.response} tokens a step, ${work.prompt} + ${work.newTokens} generated, medians of ${work.rounds}; attention's own operations are not counted`,
      ...("missing" in python ? [python.missing] : []),
      ...(known ? [] : [`no FLOP utilisation: ${name} is not in the table of data sheets (test/bench/gpu/device.ts)`]),
    ],
  };
  writeRandomModel(folder, work.config, "BF16");
  for (const compute of formatsOf(device))
    for (const trained of Object.keys(TRAINED) as Trained[])
      yield* findingsOf(`${TRAINED[trained].name}, ${compute}: speed`, async function* () {
        const peak = peakOperations(name, compute);
        yield await measured(options, {
          work,
          trained,
          compute,
          peak,
          python: "python" in python ? python.python : undefined,
        });
      });
}

async function measured({ device, folder }: PartOptions, its: Case): Promise<Finding> {
  const { work, trained, compute } = its;
  const count = sequencesThatFit(folder, device, its);
  const batch = samples(work.config, count, work.prompt, work.response);
  writeWork(folder, batch, work);
  const starting = its.python === undefined ? undefined : startPeer(folder, device, its, its.python);
  starting?.catch(() => {}); // awaited below
  const engine = await startEngine({
    ...{ model: folder, threads: 0, ...TRAINED[trained].engine, device, resident: true, compute },
    ...{ microBatchTokens: count * (work.prompt + work.response), activationCheckpointing: "Never" },
  });
  const twin = await starting;
  try {
    const sides: [string, () => Promise<Round>][] = [[OURS, () => ourRound(engine, batch, work)]];
    if (twin) sides.push([PYTORCH, () => twin.ask()]);
    const first: Round[] = [];
    for (const [, ask] of sides) first.push(await ask()); // makes sessions
    for (const { losses } of first) agree(losses, first[0]!.losses, compute);
    const rounds = sides.map((): Round[] => []);
    for (let round = 0; round < work.rounds; round++)
      for (const [i, [, ask]] of sides.entries()) rounds[i]!.push(await ask());
    const names = sides.map(([side]) => side);
    return { rows: rowsOf(names, rounds, its, count), raw: { trained, compute, count, names, first, rounds } };
  } finally {
    twin?.close();
    await engine.close();
  }
}

/**
 * Returns the number of sequences whose steps and generation take at most half of the free memory, by the plan. @throws EngineError
 * `memory`
 */
function sequencesThatFit(model: string, device: PartOptions["device"], { work, trained, compute }: Case): number {
  if (device.kind === "cpu") return work.batch;
  const free = memoryReader(device)().freeBytes / 2;
  const plan = fitRun(
    {
      ...{ model, device, critic: true, compute: graphCompute(compute), samplesPerPrompt: 1 },
      adapter: trained === "lora" ? ADAPTER : undefined,
      ...{ maxPromptTokens: work.prompt, maxResponseTokens: work.response },
      ...{ microBatchSize: work.batch, generationBatchSize: work.batch },
    },
    0,
    { host: hostMemory(), gpu: { bytes: free, source: `half of what is free on ${deviceName(device)}` } },
    "Never",
  );
  return Math.min(work.batch, Math.max(1, Math.floor(plan.microBatchTokens / (work.prompt + work.response))));
}

/** Writes the input of gpu_torch.py. */
function writeWork(folder: string, batch: Sample[], { prompt, response, newTokens }: Work): void {
  const work = {
    tokens: batch.map((sample) => [...sample.prompt, ...sample.response]),
    ...{ promptTokens: prompt, responseTokens: response, newTokens, proximal: PROXIMAL, clipRatio: STEP.clipRatio },
    ...{ advantages: batch.map((_, i) => advantageOf(i)), returns: batch.map((_, i) => returnOf(i)) },
    ...{ learningRate: STEP.learningRate, gradientClip: STEP.gradientClip },
  };
  writeFileSync(path.join(folder, "work.json"), JSON.stringify(work));
}

async function startPeer(
  folder: string,
  device: PartOptions["device"],
  { trained, compute }: Case,
  python: string,
): Promise<Asked<Round>> {
  return Asked.start<Round>(PYTORCH, python, [
    ...[fileURLToPath(new URL("../gpu_torch.py", import.meta.url)), "--folder", folder, "--compute", compute],
    ...["--device", deviceName(device), "--rank", String(ADAPTER.rank), "--train", trained],
  ]);
}

async function ourRound(engine: RunningEngine, batch: Sample[], { newTokens }: Work): Promise<Round> {
  const losses: number[] = [];
  const start = performance.now();
  losses.push((await criticStep(engine, batch)).loss);
  losses.push((await policyStep(engine, batch)).loss);
  const between = performance.now();
  await engine.generate(
    batch.map(({ prompt }) => prompt),
    { seeds: batch.map((_, i) => i), temperature: 0, topP: 1, maxNewTokens: newTokens },
  );
  return { step: (between - start) / 1000, generation: (performance.now() - between) / 1000, losses };
}

/** @throws Error unless both sides did the same work */
function agree(losses: number[], ours: number[], compute: ComputeFormat): void {
  const close = (loss: number, own: number) =>
    Math.abs(loss - own) <= AGREEMENT[compute] * Math.max(LEAST_LOSS, Math.abs(own));
  if (losses.every((loss, i) => close(loss, ours[i]!))) return;
  throw new Error(`${PYTORCH} does other work: losses of critic and policy are ${losses}, ours ${ours}`);
}

/** Returns a row for each side of the step and of generation; ratios are of seconds. */
function rowsOf(sides: string[], rounds: Round[][], { work, trained, compute, peak }: Case, count: number) {
  return (["step", "generation"] as const).flatMap((what) => {
    const seconds = rounds.map((found) => median(found.map((round) => round[what])));
    const { tokens, operations } = workOf(work, trained, count)[what];
    return sides.map((side, i) => ({
      ...{ shape: work.name, trained: TRAINED[trained].name, compute, sequences: count },
      ...{ what: what === "step" ? "PPO step" : what, side, seconds: seconds[i]!.toFixed(3) },
      "tokens/s": Math.round(tokens / seconds[i]!),
      ...(peak && { "FLOP utilisation": `${((100 * operations) / seconds[i]! / peak).toFixed(1)} %` }),
      ratio: i === 0 ? "" : `${(seconds[i]! / seconds[0]!).toFixed(2)}x`,
    }));
  });
}

/** Returns tokens, and operations of the model's matrices. The output layer only processes response tokens, and the critic has none. */
function workOf({ config, prompt, response, newTokens }: Work, trained: Trained, count: number) {
  const table = config.vocabSize * config.hiddenSize;
  const size = parameters(config).reduce((total, { shape }) => total + elementCount(shape), 0);
  const layers = size - (config.tied ? 1 : 2) * table;
  const tokens = count * (prompt + response);
  return {
    step: { tokens, operations: TRAINED[trained].operations * (2 * layers * tokens + table * count * response) },
    generation: {
      tokens: count * newTokens,
      operations: 2 * count * (layers * (prompt + newTokens) + table * newTokens),
    },
  };
}
