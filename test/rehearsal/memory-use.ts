/**
 * Measures device and host memory of a run, beside the learner's plan. The planner chooses the passes for a device of a given size, as when
 * a learner starts. The engine then does the work of an iteration, on a device of that size.
 *
 * With all its layers a model can be too large or too slow for the machine of a test. `layers` then leaves most of them out. The passes are
 * still the whole model's, and the device is smaller by the planned memory of the other layers.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { startEngine } from "../../learner/engine/engine.ts";
import { fitRun } from "../../learner/engine/fit.ts";
import type { ModelConfig } from "../../learner/engine/model/config.ts";
import { SHAPES, writeHollowModel } from "../../learner/engine/model/hollow.fixture.ts";
import { type MemoryPlan, Planner, SURROUNDINGS_BYTES } from "../../learner/engine/plan.ts";
import { COMPUTE, requestOf } from "../../learner/engine-options.ts";
import { ADAPTER, criticStep, policyStep, samples } from "../bench/gpu.ts";
import { kilobytes } from "../bench/process-memory.ts";
import { rehearsalEnvironment } from "./build.ts";
import { counting, resizeDevice } from "./counts.ts";
import { endWith } from "./phases.ts";

export interface Asked {
  shape: keyof typeof SHAPES;
  train: "LoRA" | "all";
  compute: keyof typeof COMPUTE;
  /** Memory of each device, 10^9 bytes. */
  gigabytes: number;
  /** Default: 1. */
  gpus?: number;
  /** `model.generationBatchSize`. */
  generation: number;
  /** Tokens; default: 1024 + 256. */
  prompt?: number;
  response?: number;
}

/** Configurations that fit and waste little, from the smallest device to the largest. */
export const CONFIGURATIONS: readonly Asked[] = [
  { shape: "0.5b", train: "LoRA", compute: "Float32", gigabytes: 24, generation: 64 },
  { shape: "0.5b", train: "LoRA", compute: "BFloat16", gigabytes: 40, generation: 64, response: 1024 },
  { shape: "0.5b", train: "all", compute: "Float32", gigabytes: 40, generation: 16 },
  { shape: "0.5b", train: "all", compute: "BFloat16", gigabytes: 80, generation: 64 },
  { shape: "3b", train: "LoRA", compute: "BFloat16", gigabytes: 24, generation: 16 },
  { shape: "3b", train: "LoRA", compute: "Float32", gigabytes: 40, generation: 32 },
  { shape: "3b", train: "LoRA", compute: "BFloat16", gigabytes: 80, generation: 64, prompt: 512 },
  { shape: "3b", train: "all", compute: "Float32", gigabytes: 141, generation: 8 },
  { shape: "7b", train: "LoRA", compute: "BFloat16", gigabytes: 40, generation: 8 },
  { shape: "7b", train: "LoRA", compute: "Float32", gigabytes: 80, generation: 16 },
  { shape: "7b", train: "LoRA", compute: "BFloat16", gigabytes: 141, generation: 32 },
  { shape: "0.5b", train: "all", compute: "Float32", gigabytes: 24, generation: 64, gpus: 2 },
  { shape: "3b", train: "LoRA", compute: "BFloat16", gigabytes: 40, generation: 64, gpus: 2 },
  { shape: "0.5b", train: "all", compute: "BFloat16", gigabytes: 24, generation: 64, gpus: 4 },
  { shape: "3b", train: "all", compute: "BFloat16", gigabytes: 40, generation: 64, gpus: 8, response: 1024 },
  { shape: "3b", train: "all", compute: "BFloat16", gigabytes: 80, generation: 64, gpus: 2, response: 1024 },
  // entries of learner/engine/plans.md, the smallest GPUs that fit
  { shape: "0.5b", train: "all", compute: "BFloat16", gigabytes: 24, generation: 64, response: 1024 },
  { shape: "1.5b", train: "all", compute: "BFloat16", gigabytes: 24, generation: 64, response: 1024 },
  { shape: "3b", train: "LoRA", compute: "BFloat16", gigabytes: 24, generation: 64, response: 1024 },
  { shape: "3b", train: "LoRA", compute: "BFloat16", gigabytes: 24, generation: 64, gpus: 2, response: 1024 },
  { shape: "3b", train: "all", compute: "BFloat16", gigabytes: 40, generation: 64, response: 1024 },
  { shape: "7b", train: "LoRA", compute: "BFloat16", gigabytes: 40, generation: 64, response: 1024 },
  { shape: "14b", train: "LoRA", compute: "BFloat16", gigabytes: 80, generation: 64, response: 1024 },
];

export const nameOf = ({ shape, train, compute, gigabytes, gpus = 1, response = 256 }: Asked): string =>
  `${shape}, ${train === "LoRA" ? "LoRA" : "every weight"}, ${compute}, ${gpus > 1 ? `${gpus} x ` : ""}${gigabytes} GB, responses of ${response}`;

const devicesOf = ({ gpus = 1 }: Asked) => Array.from({ length: gpus }, (_, id) => ({ kind: "cuda", id }) as const);

export interface Use {
  plan: MemoryPlan;
  /** Bytes of the GPU with the highest peak, without the plan's part for CUDA itself, which a rehearsal lacks. */
  gpu: { plan: number; peak: number };
  /** Bytes, without the plan's part for the rest of a run, which a rehearsal lacks. */
  host: { plan: number; peak: number };
  phases: { phase: string; gpuBytes: number; hostBytes: number; seconds: number }[];
}

/** @throws Error with the stderr of the rehearsing process */
export async function memoryUse(asked: Asked, layers: number): Promise<Use> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "longrun-memory-"));
  try {
    const file = path.join(folder, "use.json");
    const args = [fileURLToPath(import.meta.url), JSON.stringify(asked), String(layers), folder, file];
    const env: NodeJS.ProcessEnv = {
      ...{ ...process.env, ...rehearsalEnvironment(), REHEARSAL_DEVICES: String(asked.gpus ?? 1) },
      NODE_COMPILE_CACHE: undefined, // while it is filled, the process takes 80 MB more than a learner does
    };
    await promisify(execFile)(process.execPath, args, { env }).catch(
      ({ stderr, message }: Error & { stderr?: string }) => {
        throw new Error(stderr?.trim() || message);
      },
    );
    return JSON.parse(readFileSync(file, "utf8"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the use with all layers, extrapolated from two depths: each layer takes the same memory. */
export function extrapolated(asked: Asked, few: Use, more: Use, depths: readonly [number, number]): Use {
  const { layers } = SHAPES[asked.shape];
  const line = (a: number, b: number) => b + ((layers - depths[1]) * (b - a)) / (depths[1] - depths[0]);
  const both = (of: "gpu" | "host") => ({
    plan: line(few[of].plan, more[of].plan),
    peak: line(few[of].peak, more[of].peak),
  });
  return { ...more, gpu: both("gpu"), host: both("host") };
}

const cudaBytes = (plan: MemoryPlan) => plan.rows.find(({ what }) => what === "process")!.gpuBytes;

/**
 * Returns the plan of the rehearsal, with the passes of the whole model on this device.
 *
 * @throws EngineError `memory` if the whole model does not fit
 */
export function planned(asked: Asked, layers: number, folder: string) {
  const { prompt = 1024, response = 256 } = asked;
  const manifest = {
    ...{ apiVersion: "longrun.dev/v1alpha1", kind: "TrainingRun", metadata: { name: "memory" } },
    spec: {
      tasks: [{ name: "diamonds" }],
      model: {
        ...{ policy: "quickstart", generationBatchSize: asked.generation },
        ...{ maxPromptTokens: prompt, maxResponseTokens: response },
        ...(asked.train === "LoRA" && { adaptation: { type: "LoRA", rank: ADAPTER.rank } }),
      },
      learner: { device: "CUDA", compute: asked.compute },
    },
  };
  const { spec } = parseTrainingRun(stringify(manifest), "memory.yaml");
  const requestFor = (name: string, config: ModelConfig) => {
    const model = path.join(folder, name);
    writeHollowModel(model, config);
    endWith(model, config.vocabSize - 1); // every response has the longest length
    const devices = devicesOf(asked);
    return { ...requestOf(spec, model, devices[0]!), ...(devices.length > 1 && { devices }) };
  };
  const config = SHAPES[asked.shape];
  const { threads, activationCheckpointing } = spec.learner;
  const budget = { gpu: { bytes: asked.gigabytes * 1e9, source: "given" }, host: undefined };
  const whole = fitRun(requestFor("whole", config), threads, budget, activationCheckpointing);
  const request = { ...requestFor("rehearsed", { ...config, layers }), checkpointing: whole.checkpointing };
  const plan = new Planner(request).plan(whole.microBatchTokens, whole.ranks, whole);
  const room = budget.gpu.bytes - cudaBytes(whole) - (whole.gpuBytes - plan.gpuBytes);
  return { learner: spec.learner, config, request, plan, room };
}

/** Returns the memory of this process. Device memory is shared memory here, which neither number includes. */
const hostBytes = () => kilobytes("/proc/self/status", "RssAnon") + kilobytes("/proc/self/status", "RssFile");

const LOOK_MILLISECONDS = 5;
/** The second time a few tokens are enough: all prompts are read again. */
const FEW_TOKENS = 16;

async function rehearse(asked: Asked, layers: number, folder: string): Promise<Use> {
  const { learner, config, request, plan, room } = planned(asked, layers, folder);
  const { adapter, model, device, devices, generationBatchSize, maxPromptTokens, maxResponseTokens } = request;
  const placement = { offloads: plan.offloads, swaps: plan.swaps };
  let highest = 0;
  const look = () => {
    highest = Math.max(highest, hostBytes());
  };
  const timer = setInterval(look, LOOK_MILLISECONDS); // the engine works in a thread of its own
  const phases: Use["phases"] = [];
  const phase = async <T>(name: string, act: () => Promise<T>) => {
    highest = 0;
    const start = performance.now();
    const { result, counts } = await counting(act);
    look();
    const seconds = (performance.now() - start) / 1000;
    phases.push({ phase: name, gpuBytes: counts.peakBytes, hostBytes: highest, seconds });
    return { result, counts };
  };
  for (const { id } of devicesOf(asked)) resizeDevice(room, id);
  const { result: engine } = await phase("start", () =>
    startEngine({
      ...{ model, device, ...(devices && { devices }), adapter, threads: learner.threads, critic: request.critic },
      ...{ slots: generationBatchSize, positions: maxPromptTokens + maxResponseTokens },
      ...{ microBatchTokens: plan.microBatchTokens, rowTokens: plan.rowTokens, workers: plan.ranks, ...placement },
      ...{ activationCheckpointing: plan.checkpointing ? "Always" : "Never", compute: COMPUTE[learner.compute] },
    }),
  );
  const rows = samples(config, generationBatchSize, maxPromptTokens, maxResponseTokens);
  const prompts = rows.map(({ prompt }) => prompt);
  const together = Math.floor(plan.microBatchTokens / plan.rowTokens);
  // Passes of the longest sequences, and of shorter ones. Several GPUs would share one batch of both as smaller passes, of about the same
  // number of tokens each: they get one batch of each kind.
  const passes = together * (devices?.length ?? 1);
  const longest = samples(config, passes, 1, maxPromptTokens + maxResponseTokens - 1); // as responses of one prompt fill a row
  const shorter = samples(config, passes, maxPromptTokens >> 1, maxResponseTokens >> 2);
  const both = [...longest, ...shorter];
  for (const [maxNewTokens, batch] of [
    [maxResponseTokens, devices ? longest : both],
    [FEW_TOKENS, devices ? shorter : both],
  ] as const) {
    const options = { seeds: rows.map((_, i) => i), temperature: 1, topP: 1, maxNewTokens };
    await phase("generation", () => engine.generate(prompts, options));
    await engine.initializeCritic(0);
    await phase("log-probs", () => engine.evaluate(batch, { temperature: 1, values: true }));
    await phase("critic step", () => criticStep(engine, batch));
    await phase("policy step", () => policyStep(engine, batch));
  }
  // The digest brings weights and moments to the host, as a checkpoint does. It is the first access to the moments, and the rehearsal skips
  // large copies (build.ts). With several GPUs the weights are on the host already. Moments that stay on the host were not written either.
  const { counts } = await phase("digest", () => engine.digest());
  const moments = plan.rows.find(({ what }) => what === "optimiser")!.hostBytes;
  phases.at(-1)!.hostBytes += plan.offloads ? moments : (devices ? 1 : 2 / 3) * counts.toHostBytes;
  clearInterval(timer);
  await engine.close();
  const most = (of: "gpuBytes" | "hostBytes") => Math.max(...phases.map((each) => each[of]));
  return {
    ...{ plan, phases },
    gpu: { plan: plan.gpuBytes - cudaBytes(plan), peak: most("gpuBytes") },
    host: { plan: plan.hostBytes - SURROUNDINGS_BYTES, peak: most("hostBytes") },
  };
}

if (import.meta.main) {
  const [asked, layers, folder, file] = process.argv.slice(2) as [string, string, string, string];
  try {
    writeFileSync(file, JSON.stringify(await rehearse(JSON.parse(asked), Number(layers), folder)));
    process.exit(0);
  } catch (error) {
    process.stderr.write((error as Error).message);
    process.exit(1);
  }
}
