/** From a manifest to the engine's options, with a device that has the memory for them. */
import type { Model, TrainingRunSpec } from "../crds/trainingrun.ts";
import {
  type AdapterOptions,
  type ComputeFormat,
  type Device,
  deviceNames,
  EngineError,
  fitRun,
  gpuMemory,
  graphCompute,
  hostMemory,
  leastGpuMemory,
  type MemoryPlan,
  type PlanRequest,
  PROJECTIONS,
  parseDevices,
  planTable,
  probeDevice,
  resolveDevices,
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
 * Returns the devices and the memory plan, and tells them to the log and the parent process. @param policy model folder
 * @param restarted the run has begun before: it goes on without GPUs that have failed since
 * @throws GraphError `device`, EngineError `memory` or `device`: one line with the remedy
 */
export async function place(
  policy: string,
  spec: TrainingRunSpec,
  { device: wished, memoryBytes, generators }: Pick<Options, "device" | "memoryBytes" | "generators">,
  log: Logger,
  restarted: boolean,
): Promise<MemoryPlan> {
  const wish = parseDevices(wished ?? spec.learner.device);
  const asked = requestOf(spec, policy, { kind: "cpu" });
  // generators write: the learner has no KV cache
  const request = generators.length > 0 ? { ...asked, generationBatchSize: 1 } : asked;
  const found = await resolveDevices(wish, probeDevice, { lossy: restarted });
  const { reason, lost } = found;
  const cudas = largest(found.devices, wish === "auto");
  const devices: readonly Device[] = cudas.length > 0 ? cudas : found.devices;
  const names = deviceNames(devices);
  log.info({ device: names, reason }, `the networks run on ${names}${reason ? `: ${reason}` : ""}`);
  for (const why of lost) log.warn({ lost: why }, `the run goes on without a GPU: ${why}`);
  const given = memoryBytes && { bytes: memoryBytes, source: "given" };
  const onGpu = cudas.length > 0;
  const budget = {
    host: (!onGpu && given) || hostMemory(),
    gpu: onGpu ? given || leastGpuMemory(cudas) : undefined,
  };
  const { threads, activationCheckpointing } = spec.learner;
  let plan: MemoryPlan;
  try {
    const several = devices.length > 1 ? devices : undefined;
    plan = fitRun({ ...request, device: devices[0]!, devices: several }, threads, budget, activationCheckpointing);
  } catch (cause) {
    if (lost.length === 0 || (cause as EngineError).code !== "memory") throw cause;
    // with all of its GPUs it may fit again
    throw new EngineError("device", `${lost[0]}; without it ${(cause as Error).message}`, { cause });
  }
  const table = planTable(plan, budget);
  log.info({ plan }, table[0]);
  process.send?.({ type: "plan", table });
  return plan;
}

/** `Auto` leaves out a GPU with less free memory than this share of the largest: all GPUs hold the same. */
const LEAST_SHARE = 0.5;

/** The GPUs among devices, in `auto` those of about the same size. */
function largest(devices: readonly Device[], auto: boolean) {
  const cudas = devices.filter((device) => device.kind === "cuda");
  if (!auto || cudas.length < 2) return cudas;
  const free = cudas.map((device) => gpuMemory(device)?.bytes ?? Number.POSITIVE_INFINITY);
  return cudas.filter((_, i) => free[i]! >= LEAST_SHARE * Math.max(...free.filter(Number.isFinite)));
}

/** Returns what the memory plan must hold. */
export function requestOf(
  spec: Pick<TrainingRunSpec, "model" | "algorithm" | "seed" | "learner">,
  model: string,
  device: Device,
): PlanRequest {
  const { maxPromptTokens, maxResponseTokens, generationBatchSize, instrumenter } = spec.model;
  return {
    ...{ model, device, maxPromptTokens, maxResponseTokens, generationBatchSize },
    instrumenter: instrumenter === "StaticPolicy" ? instrumenterLengths(spec.model) : undefined,
    adapter: adapterOf(spec),
    critic: spec.algorithm.baseline === "Critic",
    microBatchSize: spec.algorithm.microBatchSize,
    samplesPerPrompt: samplesPerPrompt(spec.algorithm),
    compute: graphCompute(COMPUTE[spec.learner.compute]),
  };
}

/** Returns the adapter that a manifest asks for; undefined: every weight is trained. */
export function adapterOf(spec: { model: Pick<Model, "adaptation">; seed: number }): AdapterOptions | undefined {
  const { seed } = spec;
  const { type, rank, alpha, targets } = spec.model.adaptation;
  if (type !== "LoRA" || rank === undefined) return undefined;
  return { rank, alpha: alpha ?? rank, targets: PROJECTIONS.filter((name) => targets?.includes(name) ?? true), seed };
}
