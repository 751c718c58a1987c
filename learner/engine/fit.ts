/** Whether a run fits into memory: picks its micro-batch, and says what takes most. */

import type { AvailableMemory } from "./available-memory.ts";
import type { ActivationCheckpointing } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { passTokens, workerCount } from "./microbatches.ts";
import { ModelError } from "./model/errors.ts";
import { type MemoryPlan, Planner, type PlanPart, type PlanRequest } from "./plan.ts";
import { deviceName } from "./runtime/device.ts";

/** What there is; undefined where it is not known, and nothing is refused. */
export interface Budget {
  host: AvailableMemory | undefined;
  gpu: AvailableMemory | undefined;
}

/** The least that a manifest may give of either. */
const LEAST_TOKENS = 16;

/**
 * Prompts are cut to `maxPromptTokens`, but nothing shortens a response where the model's context ends: all tokens are asked
 * for, whatever the prompt.
 *
 * @param positions the model's context, tokens
 * @param place where the lengths are from, if not from a manifest
 * @throws ModelError `generation`, one line, if a prompt and a response could be more than the model takes
 */
export function checkLengths(
  { maxPromptTokens: prompt, maxResponseTokens: response }: Pick<PlanRequest, "maxPromptTokens" | "maxResponseTokens">,
  positions: number,
  place = "",
): void {
  if (prompt + response <= positions) return;
  const most = { "model.maxResponseTokens": positions - prompt, "model.maxPromptTokens": positions - response };
  const enough = Object.entries(most).flatMap(([field, tokens]) =>
    tokens >= LEAST_TOKENS ? [`${field} to ${tokens} or less`] : [],
  );
  const remedy = enough.length > 0 ? enough.join(", or ") : `both lower, to ${positions} together or less`;
  throw new ModelError(
    "generation",
    `${place}model.maxPromptTokens and model.maxResponseTokens are ${prompt} + ${response} tokens, but model.policy has ` +
      `${positions} positions (max_position_embeddings): set ${remedy}`,
  );
}

/**
 * The plan of a run. Its passes have as many tokens as are fastest (on a CPU few stay in the caches, a GPU takes as many as
 * there are), or as fit.
 *
 * @param threads of the CPU; 0: all cores
 * @param mode whether layers are recomputed in the backward pass; Auto: where a single sequence does not fit otherwise
 * @throws EngineError `memory`, one line with the largest parts and their settings; ModelError for a folder that cannot be used
 */
export function fitRun(
  request: PlanRequest,
  threads: number,
  budget: Budget,
  mode: ActivationCheckpointing = "Auto",
): MemoryPlan {
  const { device, adapter, microBatchSize } = request;
  const planOf = (checkpointing: boolean) => {
    const planner = new Planner({ ...request, checkpointing });
    const on = (workers: number) => {
      const tokens = device.kind === "cuda" ? microBatchSize * planner.longest : passTokens({ threads }, workers);
      let plan = planner.plan(tokens, workers);
      while (!fits(plan, budget) && plan.microBatchTokens > planner.longest)
        plan = planner.plan(Math.max(planner.longest, Math.floor(plan.microBatchTokens / 2)), workers);
      return plan;
    };
    const workers = workerCount({ threads, device, adapter });
    const plan = on(workers);
    return workers > 1 && !fits(plan, budget) ? on(1) : plan;
  };
  let plan = planOf(mode === "Always");
  if (mode === "Auto" && !fits(plan, budget)) plan = planOf(true);
  if (fits(plan, budget)) return plan;
  throw new EngineError("memory", shortage(plan, budget, { ...request, mode }));
}

const fits = (plan: MemoryPlan, { host, gpu }: Budget): boolean =>
  !(host && plan.hostBytes > host.bytes) && !(gpu && plan.gpuBytes > gpu.bytes);

/** One line about a plan that does not fit: its four largest parts in the memory that is short (the GPU's first), and their settings. */
function shortage(plan: MemoryPlan, { host, gpu }: Budget, request: Request): string {
  const onGpu = gpu !== undefined && plan.gpuBytes > gpu.bytes;
  const [which, there, place] = onGpu
    ? (["gpuBytes", gpu, `memory on ${deviceName(plan.device)}`] as const)
    : (["hostBytes", host!, "memory"] as const);
  const governing = settings(request);
  const largest = plan.rows
    .filter((row) => row[which] > 0)
    .sort((a, b) => b[which] - a[which])
    .slice(0, 4)
    .map(({ what, [which]: bytes }) => `${what} ${size(bytes)} (${governing[what].join(", ") || "no setting"})`);
  return (
    `the run needs about ${size(plan[which])} of ${place}, but ${size(there.bytes)} is ${there.source}; ` +
    `the largest parts, and the settings of each: ${largest.join("; ")}`
  );
}

type Request = PlanRequest & { mode: ActivationCheckpointing };

/**
 * The manifest's settings that make a row of the plan smaller, with their value where it is not a number to lower. A refused plan has
 * passes of one sequence already, so that `algorithm.microBatchSize` changes nothing.
 */
function settings({ adapter, critic, instrumenter, mode }: Request): Record<PlanPart, readonly string[]> {
  const lengths = ["model.maxPromptTokens", "model.maxResponseTokens"];
  const optional = (wanted: boolean, setting: string) => (wanted ? [setting] : []);
  const instrumented = optional(instrumenter !== undefined, "model.instrumenter: Syntax");
  const trained = [
    adapter ? "model.adaptation.rank" : "model.adaptation.type: LoRA",
    ...optional(critic, "algorithm.baseline: GRPO or RLOO"),
  ];
  return {
    process: [],
    weights: adapter ? ["model.policy"] : trained,
    gradients: trained,
    optimiser: trained,
    activations: [...optional(mode === "Never", "learner.activationCheckpointing: Auto"), ...lengths],
    logits: lengths,
    cache: ["model.generationBatchSize", ...lengths, ...instrumented],
    generation: ["model.maxPromptTokens", ...instrumented],
  };
}

/** A table for a terminal or a log. */
export function planTable(plan: MemoryPlan, budget: Budget): string[] {
  const gpu = plan.device.kind === "cuda";
  const total = (bytes: number, there: AvailableMemory | undefined, unknown = "") =>
    size(bytes) + (there ? ` of ${size(there.bytes)} ${there.source}` : unknown);
  const host = total(plan.hostBytes, budget.host);
  const onGpu = () => total(plan.gpuBytes, budget.gpu, " of a size that nvidia-smi does not say");
  const head = gpu
    ? `memory plan: on ${deviceName(plan.device)} ${onGpu()}; here ${host}`
    : `memory plan: ${host}; micro-batches of ${plan.microBatchTokens} tokens`;
  const cells = (bytes: number) => (bytes > 0 ? size(bytes) : "-").padStart(9);
  const line = ({ what, detail, hostBytes, gpuBytes }: MemoryPlan["rows"][number]) =>
    `  ${what.padEnd(13)}${gpu ? cells(gpuBytes) : ""}${cells(hostBytes)}  ${detail}`;
  return [head, ...plan.rows.map(line)];
}

/** Bytes as people read them, in decimal units. */
export function size(bytes: number): string {
  for (const [unit, factor] of [
    ["GB", 1e9],
    ["MB", 1e6],
    ["kB", 1e3],
  ] as const) {
    if (bytes >= factor) return `${(bytes / factor).toPrecision(3)} ${unit}`;
  }
  return `${bytes} bytes`;
}
