/** From a manifest to the engine's options, with a device that has the memory for them. */
import type { Model, TrainingRunSpec } from "../crds/trainingrun.ts";
import {
  type AdapterOptions,
  type ComputeFormat,
  type Device,
  deviceName,
  fitRun,
  gpuMemory,
  graphCompute,
  hostMemory,
  type MemoryPlan,
  type PlanRequest,
  PROJECTIONS,
  parseDevice,
  planTable,
  probeDevice,
  resolveDevice,
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
 * Returns the device and the memory plan, and tells them to the log and the parent process. @param policy model folder
 * @throws GraphError `device`, EngineError `memory`: one line with the remedy
 */
export async function place(
  policy: string,
  spec: TrainingRunSpec,
  { device: wished, memoryBytes }: Pick<Options, "device" | "memoryBytes">,
  log: Logger,
): Promise<MemoryPlan> {
  const wish = parseDevice(wished ?? spec.learner.device);
  const request = requestOf(spec, policy, { kind: "cpu" });
  const { device, reason } = await resolveDevice(wish, probeDevice);
  const name = deviceName(device);
  log.info({ device: name, reason }, `the networks run on ${name}${reason ? `: ${reason}` : ""}`);
  const given = memoryBytes && { bytes: memoryBytes, source: "given" };
  const onGpu = device.kind === "cuda";
  const budget = { host: (!onGpu && given) || hostMemory(), gpu: onGpu ? given || gpuMemory(device) : undefined };
  const { threads, activationCheckpointing } = spec.learner;
  const plan = fitRun({ ...request, device }, threads, budget, activationCheckpointing);
  const table = planTable(plan, budget);
  log.info({ plan }, table[0]);
  process.send?.({ type: "plan", table });
  return plan;
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
