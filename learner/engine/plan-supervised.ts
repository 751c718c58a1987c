/** The memory of supervised training: no reference, no critic, nothing is generated. */
import type { AdapterOptions } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { type Budget, Fitting, fits, shortage } from "./fit.ts";
import type { Compute } from "./graph/graph.ts";
import type { MemoryPlan, PlanPart, PlanRequest } from "./plan.ts";
import type { Device } from "./runtime/device.ts";

export interface SupervisedRequest {
  /** a Hugging Face folder */
  model: string;
  /** left out: every weight is trained */
  adapter: AdapterOptions | undefined;
  /** most tokens of a prompt and its response */
  maxTokens: number;
  /** most sequences of a forward and backward pass */
  microBatchSize: number;
  compute?: Compute;
  device: Device;
  devices?: readonly Device[] | undefined;
}

/** The caller's names of the settings that make a plan smaller. */
export interface SupervisedSettings {
  adapter: string;
  lengths: string;
}

/**
 * Returns the plan of supervised training, with the fastest passes that fit, layers recomputed where nothing else does.
 *
 * @param threads threads of the CPU; 0: all cores
 * @throws EngineError `memory`, one line with the largest parts and the settings of each
 */
export function fitSupervised(
  { maxTokens, ...request }: SupervisedRequest,
  threads: number,
  budget: Budget,
  named: SupervisedSettings,
): MemoryPlan {
  // prompts and responses have one limit together; a response has at least one token
  const lengths = { maxPromptTokens: 1, maxResponseTokens: maxTokens - 1, generationBatchSize: 1, samplesPerPrompt: 1 };
  const asked: PlanRequest = { ...request, ...lengths, critic: false, supervised: "Alone" };
  const fitting = new Fitting(threads, budget);
  const plan = fitting.best(asked);
  if (fits(plan, budget)) return plan;
  const trained = request.adapter ? [] : [named.adapter];
  const none = { process: [], cache: [], generation: [] };
  const governing: Record<PlanPart, readonly string[]> = {
    ...none,
    weights: trained,
    gradients: trained,
    optimiser: trained,
    activations: [named.lengths],
    logits: [named.lengths],
  };
  throw new EngineError("memory", shortage(plan, budget, governing, "training"));
}
