/** What a manifest asks of the engine: its options, and what its memory is planned for. */
import type { Model, TrainingRunSpec } from "../crds/trainingrun.ts";
import type { AdapterOptions, ComputeFormat } from "./engine/engine.ts";
import { PROJECTIONS } from "./engine/model/lora.ts";
import type { PlanRequest } from "./engine/plan.ts";
import type { Device } from "./engine/runtime/device.ts";
import { graphCompute } from "./engine/sessions.ts";
import { samplesPerPrompt } from "./rl/groups.ts";
import { instrumenterLengths } from "./rollout/instrument-policy.ts";

/** What `learner.compute` is for the engine. */
export const COMPUTE = {
  Float32: "float32",
  TF32: "tf32",
  BFloat16: "bfloat16",
} as const satisfies Record<TrainingRunSpec["learner"]["compute"], ComputeFormat>;

/** What a manifest asks for. */
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

/** The adapter that a manifest asks for; none trains every weight. */
export function adapterOf({
  model: { adaptation },
  seed,
}: {
  model: Pick<Model, "adaptation">;
  seed: number;
}): AdapterOptions | undefined {
  const { type, rank, alpha, targets } = adaptation;
  if (type !== "LoRA" || rank === undefined) return undefined;
  return { rank, alpha: alpha ?? rank, targets: PROJECTIONS.filter((name) => targets?.includes(name) ?? true), seed };
}
