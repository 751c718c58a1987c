/** From a manifest to the engine's options and its memory plan's request. */
import type { Model, TrainingRunSpec } from "../crds/trainingrun.ts";
import type { AdapterOptions, ComputeFormat } from "./engine/engine.ts";
import { PROJECTIONS } from "./engine/model/lora.ts";
import type { PlanRequest } from "./engine/plan.ts";
import type { Device } from "./engine/runtime/device.ts";
import { graphCompute } from "./engine/sessions.ts";
import { samplesPerPrompt } from "./rl/groups.ts";

/** The engine's word for each value of `learner.compute`. */
export const COMPUTE = {
  Float32: "float32",
  TF32: "tf32",
  BFloat16: "bfloat16",
} as const satisfies Record<TrainingRunSpec["learner"]["compute"], ComputeFormat>;

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

/** Longest prompt and response of the static policy that instruments programs. */
export const instrumenterLengths = (model: Pick<Model, `instrumenterMax${"Prompt" | "Response"}Tokens`>) => ({
  promptTokens: model.instrumenterMaxPromptTokens,
  responseTokens: model.instrumenterMaxResponseTokens,
});
