/** Whether a run fits into memory: picks its micro-batch, and says what takes most. */

import type { AvailableMemory } from "./available-memory.ts";
import type { ActivationCheckpointing } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { passTokens, workerCount } from "./microbatches.ts";
import { ModelError } from "./model/errors.ts";
import { PROJECTIONS } from "./model/lora.ts";
import { type MemoryPlan, type Placement, Planner, type PlanPart, type PlanRequest } from "./plan.ts";
import { type Device, deviceNames } from "./runtime/device.ts";

/** What there is; undefined where it is not known, and nothing is refused. */
export interface Budget {
  host: AvailableMemory | undefined;
  /** of several GPUs that of the one with the least */
  gpu: AvailableMemory | undefined;
}

/** GPUs that a refusal tries. */
const MORE_GPUS = [2, 4, 8, 16];

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
  const plan = bestPlan(request, threads, budget, mode);
  if (fits(plan, budget)) return plan;
  const remedies = alternatives(request, threads, budget, mode);
  throw new EngineError("memory", `${shortage(plan, budget, { ...request, mode })}${remedies}`);
}

/** The plan with the largest passes that fit, or the one of the smallest that do not. */
function bestPlan(request: PlanRequest, threads: number, budget: Budget, mode: ActivationCheckpointing): MemoryPlan {
  const { device, devices, adapter, microBatchSize } = request;
  const planOf = (checkpointing: boolean) => {
    const planner = new Planner({ ...request, checkpointing });
    const on = (workers: number, placement: Placement = {}) => {
      const tokens = device.kind === "cuda" ? microBatchSize * planner.longest : passTokens({ threads }, workers);
      let plan = planner.plan(tokens, workers, placement);
      while (!fits(plan, budget) && plan.microBatchTokens > planner.longest)
        plan = planner.plan(Math.max(planner.longest, Math.floor(plan.microBatchTokens / 2)), workers, placement);
      return plan;
    };
    const workers = workerCount({ threads, device, adapter, ...(devices && { devices }) });
    const plan = on(workers);
    if (fits(plan, budget)) return plan;
    // numbers cross the bus once a step, and models a few times an iteration; layers would be recomputed in every pass
    if (planner.canOffload) {
      const offloaded = on(workers, { offloads: true });
      return fits(offloaded, budget) ? offloaded : on(workers, { offloads: true, swaps: true });
    }
    // threads of a CPU can run one pass together
    return device.kind === "cpu" && workers > 1 ? on(1) : plan;
  };
  const plan = planOf(mode === "Always");
  return mode === "Auto" && !fits(plan, budget) ? planOf(true) : plan;
}

/** What makes a refused run fit, each by itself, as the end of a line; empty where nothing of it does. */
function alternatives(request: PlanRequest, threads: number, budget: Budget, mode: ActivationCheckpointing): string {
  const { device, devices = [device], adapter, critic } = request;
  const changes: [remedy: string, change: Partial<PlanRequest>][] = [
    ...(device.kind === "cuda" ? MORE_GPUS : [])
      .filter((count) => count > devices.length)
      .map((count): [string, Partial<PlanRequest>] => [`${count} GPUs like this`, { devices: gpus(count) }]),
    ...(adapter ? [] : [[`model.adaptation.type: LoRA`, { adapter: LORA }] as [string, Partial<PlanRequest>]]),
    ...(critic ? [[`algorithm.baseline: GRPO`, { critic: false }] as [string, Partial<PlanRequest>]] : []),
  ];
  const found = changes.filter(([, change]) =>
    fits(bestPlan({ ...request, ...change }, threads, budget, mode), budget),
  );
  // the fewest GPUs are enough to know
  const first = found.findIndex(([, { devices }]) => devices !== undefined);
  const remedies = found.filter(([, { devices }], i) => devices === undefined || i === first).map(([remedy]) => remedy);
  return remedies.length > 0 ? `; it fits with ${remedies.join(", or with ")}` : "";
}

/** A manifest's default rank. */
const LORA = { rank: 16, alpha: 16, targets: PROJECTIONS, seed: 0 };

const gpus = (count: number): Device[] => Array.from({ length: count }, (_, id) => ({ kind: "cuda", id }));

const fits = (plan: MemoryPlan, { host, gpu }: Budget): boolean =>
  !(host && plan.hostBytes > host.bytes) && !(gpu && plan.gpuBytes > gpu.bytes);

/** One line about a plan that does not fit: its four largest parts in the memory that is short (the GPU's first), and their settings. */
function shortage(plan: MemoryPlan, { host, gpu }: Budget, request: Request): string {
  const onGpu = gpu !== undefined && plan.gpuBytes > gpu.bytes;
  const [which, there, place] = onGpu
    ? (["gpuBytes", gpu, `memory on ${namesOf(plan)}`] as const)
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

/** Where a plan's GPU memory is. */
const namesOf = ({ device, devices = [device] }: MemoryPlan) =>
  `${devices.length > 1 ? "each of " : ""}${deviceNames(devices)}`;

/** A table for a terminal or a log. */
export function planTable(plan: MemoryPlan, budget: Budget): string[] {
  const gpu = plan.device.kind === "cuda";
  const total = (bytes: number, there: AvailableMemory | undefined, unknown = "") =>
    size(bytes) + (there ? ` of ${size(there.bytes)} ${there.source}` : unknown);
  const host = total(plan.hostBytes, budget.host);
  const onGpu = () => total(plan.gpuBytes, budget.gpu, " of a size that nvidia-smi does not say");
  const head = gpu
    ? `memory plan: on ${namesOf(plan)} ${onGpu()}; here ${host}`
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
