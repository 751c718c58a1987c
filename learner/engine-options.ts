/** Turns a manifest into the engine's options, and chooses a device with enough memory for them. */
import { gpuCount } from "../crds/gpu.ts";
import type { Model, TrainingRunSpec } from "../crds/trainingrun.ts";
import {
  type AdapterOptions,
  type Budget,
  type ComputeFormat,
  type Device,
  deviceNames,
  EngineError,
  fitInference,
  fitRun,
  generationShape,
  gpuMemory,
  graphCompute,
  hostMemory,
  type InferenceRequest,
  instrumenterShape,
  leastGpuMemory,
  MappedWeights,
  type MemoryPlan,
  type PlanRequest,
  PROJECTIONS,
  parseDevices,
  planTable,
  probeDevice,
  resolveDevices,
  SURROUNDINGS_BYTES,
  workerCount,
} from "./engine/index.ts";
import type { Logger } from "./log.ts";
import type { Options } from "./options.ts";
import { samplesPerPrompt } from "./rl/groups.ts";
import { instrumenterLengths } from "./rollout/instrument-policy.ts";

/** The engine's word for each value of `learner.compute`. */
export const COMPUTE = {
  Float32: "float32",
  TF32: "tf32",
  BFloat16: "bfloat16",
} as const satisfies Record<TrainingRunSpec["learner"]["compute"], ComputeFormat>;

/**
 * Returns the devices and the memory plan, and reports them to the log and the parent process. @param policy model folder
 * @param restarted the run has begun before: it goes on without GPUs that have failed since
 * @throws GraphError `device`, EngineError `memory` or `device`: one line with the remedy
 */
export async function place(
  policy: string,
  spec: TrainingRunSpec,
  options: Pick<Options, "device" | "memoryBytes" | "generators">,
  log: Logger,
  restarted: boolean,
): Promise<MemoryPlan> {
  const { threads, activationCheckpointing } = spec.learner;
  const asked = requestOf(spec, policy, { kind: "cpu" });
  // Generators write, so the learner needs a KV cache only for its frozen copy, which inserts markers into this many programs at once.
  const isCacheless = options.generators.length > 0 && asked.instrumenter === undefined;
  const request = isCacheless ? { ...asked, generationBatchSize: 1 } : asked;
  return placed(spec, options, log, restarted, (devices, budget) =>
    fitRun({ ...request, ...devices }, threads, budget, activationCheckpointing),
  );
}

/** Does the same for `longrun evaluate`, which trains nothing. @param models number of models that are open at a time */
export async function placeEvaluation(
  models: InferenceRequest["models"],
  spec: TrainingRunSpec,
  options: Pick<Options, "device" | "memoryBytes">,
  log: Logger,
): Promise<MemoryPlan> {
  const { instrumenter, maxPromptTokens, maxResponseTokens, generationBatchSize } = spec.model;
  const limits = { maxPromptTokens, maxResponseTokens, generationBatchSize, samplesPerPrompt: 1 };
  const programs = instrumenter === "StaticPolicy" ? [instrumenterShape(limits, instrumenterLengths(spec.model))] : [];
  const shapes = [generationShape(limits), ...programs];
  const settings = {
    slots: "model.generationBatchSize",
    lengths: ["model.maxPromptTokens", "model.maxResponseTokens"],
  };
  return placed(spec, options, log, false, ({ device, devices }, budget) => {
    // rows of small models are faster in a worker for each core; of large ones each worker would widen every matrix
    const workers = widened(models) ? 1 : workerCount({ threads: spec.learner.threads, device });
    const on = { device, devices, ...(device.kind === "cpu" && { workers }) };
    return fitInference({ models, shapes, ...on, surroundingBytes: SURROUNDINGS_BYTES }, budget, settings);
  });
}

/** Whether a model's files have numbers that a CPU cannot multiply as they are. */
const widened = (models: InferenceRequest["models"]): boolean =>
  models.some(({ folder }) => new MappedWeights(folder).tensors.some(({ dtype }) => dtype !== "F32"));

type Devices = Pick<PlanRequest, "device" | "devices">;

async function placed(
  spec: TrainingRunSpec,
  { device: wished, memoryBytes }: Pick<Options, "device" | "memoryBytes">,
  log: Logger,
  restarted: boolean,
  fit: (devices: Devices, budget: Budget) => MemoryPlan,
): Promise<MemoryPlan> {
  const wish = parseDevices(wished ?? spec.learner.device);
  const found = await resolveDevices(wish, probeDevice, { lossy: restarted });
  const { reason, lost } = found;
  const cudas = largest(found.devices, wish === "auto");
  const devices: readonly Device[] = cudas.length > 0 ? cudas : found.devices;
  const names = deviceNames(devices);
  log.info({ device: names, reason }, `the networks run on ${names}${reason ? `: ${reason}` : ""}`);
  const asksForAll = wish === "auto" || wish === "cuda";
  const working = found.devices.filter(({ kind }) => kind === "cuda").length;
  const missing = restarted && asksForAll ? fewer(gpuCount(spec.learner.resources), working, reason) : undefined;
  const gone = lost.length > 0 ? lost : missing === undefined ? [] : [missing];
  for (const why of gone) log.warn({ lost: why }, `the run goes on without a GPU: ${why}`);
  const given = memoryBytes && { bytes: memoryBytes, source: "given" };
  const onGpu = cudas.length > 0;
  const budget = {
    host: (!onGpu && given) || hostMemory(),
    gpu: onGpu ? given || leastGpuMemory(cudas) : undefined,
  };
  let plan: MemoryPlan;
  try {
    plan = fit({ device: devices[0]!, devices: devices.length > 1 ? devices : undefined }, budget);
  } catch (cause) {
    if (gone.length === 0 || (cause as EngineError).code !== "memory") throw cause;
    // The run may fit again with all of its GPUs.
    throw new EngineError("device", `${gone[0]}; with what is left ${(cause as Error).message}`, { cause });
  }
  const table = planTable(plan, budget);
  log.info({ plan }, table[0]);
  process.send?.({ type: "plan", table });
  return plan;
}

/** Returns the fault of GPUs that the driver no longer lists; undefined if none is missing. */
function fewer(given: number, work: number, reason = ""): string | undefined {
  if (work >= given) return undefined;
  return `learner.resources gives ${given} GPUs, but ${work} work here${work === 0 && reason ? ` (${reason})` : ""}; see nvidia-smi -L on its node`;
}

/** `Auto` leaves out a GPU with less free memory than this share of the largest: all GPUs hold the same. */
const LEAST_SHARE = 0.5;

/** Returns the GPUs among devices, in `auto` the GPUs of about the same size. */
function largest(devices: readonly Device[], auto: boolean) {
  const cudas = devices.filter((device) => device.kind === "cuda");
  if (!auto || cudas.length < 2) return cudas;
  const free = cudas.map((device) => gpuMemory(device)?.bytes ?? Number.POSITIVE_INFINITY);
  return cudas.filter((_, i) => free[i]! >= LEAST_SHARE * Math.max(...free.filter(Number.isFinite)));
}

/** Returns the request for the memory plan. */
export function requestOf(
  spec: Pick<TrainingRunSpec, "model" | "algorithm" | "seed" | "learner" | "warmStart">,
  model: string,
  device: Device,
): PlanRequest {
  const { maxPromptTokens, maxResponseTokens, generationBatchSize, instrumenter } = spec.model;
  return {
    model,
    device,
    maxPromptTokens,
    maxResponseTokens,
    generationBatchSize,
    instrumenter: instrumenter === "StaticPolicy" ? instrumenterLengths(spec.model) : undefined,
    adapter: adapterOf(spec),
    ...(spec.warmStart && { supervised: "First" }),
    critic: spec.algorithm.baseline === "Critic",
    microBatchSize: spec.algorithm.microBatchSize,
    samplesPerPrompt: samplesPerPrompt(spec.algorithm),
    compute: graphCompute(COMPUTE[spec.learner.compute]),
  };
}

/** Returns the adapter that a manifest asks for; undefined: every weight is trained. */
export function adapterOf(
  spec: { model: Pick<Model, "adaptation">; seed: number } & Pick<TrainingRunSpec, "warmStart">,
): AdapterOptions | undefined {
  const { seed } = spec;
  const { type, rank, alpha, targets } = spec.model.adaptation;
  if (type !== "LoRA" || rank === undefined) return undefined;
  const chosen = PROJECTIONS.filter((name) => targets?.includes(name) ?? true);
  // a warm-started reference is the model with an adapter
  const reference = spec.warmStart?.reference === "WarmStarted";
  return { rank, alpha: alpha ?? rank, targets: chosen, seed, ...(reference && { reference }) };
}
