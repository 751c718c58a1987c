/** Decides whether a run fits into memory: picks its micro-batch, and names the largest parts. */

import type { AvailableMemory } from "./available-memory.ts";
import type { ActivationCheckpointing } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { passTokens, workerCount } from "./microbatches.ts";
import { ModelError } from "./model/errors.ts";
import { PROJECTIONS } from "./model/lora.ts";
import { type MemoryPlan, type Placement, Planner, type PlanPart, type PlanRequest } from "./plan.ts";
import { PlanGraphs } from "./plan-graphs.ts";
import { type Device, deviceNames } from "./runtime/device.ts";

/** The available memory; undefined if unknown, in which case no request is refused. */
export interface Budget {
  host: AvailableMemory | undefined;
  /** memory of the GPU; of several, of the GPU with the least */
  gpu: AvailableMemory | undefined;
}

/** GPUs that a refusal tries. */
const MORE_GPUS = [2, 4, 8, 16];

/** Sizes of GPUs that are sold, 10^9 bytes: L4 and 4090, A100, A100 and H100, H200. */
export const GPU_GIGABYTES = [24, 40, 80, 141];

/** A refusal proposes no fewer slots than this: weights would be read for a few tokens at a time. */
const FEW_SLOTS = 4;

/** A refusal proposes no shorter prompts and responses than this, tokens: programs would not fit into them. */
const SHORT_TOKENS = 256;

/** Smallest value of `maxPromptTokens` and of `maxResponseTokens` in a manifest. */
const LEAST_TOKENS = 16;

/**
 * Prompts are cut to `maxPromptTokens`, but nothing shortens a response at the end of the model's context: the context must have room for
 * all tokens of both.
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
 * Returns the plan of a run. Its passes have the fastest number of tokens (few on a CPU, which stay in the caches; all on a GPU), or as
 * many as fit.
 *
 * @param threads threads of the CPU; 0: all cores
 * @param mode whether layers are recomputed in the backward pass; Auto: where a single sequence does not fit otherwise
 * @param like its graphs are used again
 * @throws EngineError `memory`, one line with the largest parts and their settings; ModelError for a folder that cannot be used
 */
export function fitRun(
  request: PlanRequest,
  threads: number,
  budget: Budget,
  mode: ActivationCheckpointing = "Auto",
  like?: Pick<Fitting, "graphs">,
): MemoryPlan {
  const fitting = new Fitting(threads, budget, mode, like);
  const plan = fitting.best(request);
  if (fits(plan, budget)) return plan;
  const remedies = fitting.remedies(request);
  const said = remedies.length > 0 ? `; it fits with ${remedies.join(", or with ")}` : "";
  throw new EngineError("memory", `${shortage(plan, budget, settings({ ...request, mode }))}${said}`);
}

/** A change to a request, and its name in a manifest. */
type Change = { name: string; change: Partial<PlanRequest> };

/** Plans of related requests for one budget: their graphs are built once. */
export class Fitting {
  readonly #threads: number;
  readonly #budget: Budget;
  readonly #mode: ActivationCheckpointing;
  readonly graphs: PlanGraphs;

  /** @param like a Fitting for another budget, whose graphs are used again */
  constructor(threads: number, budget: Budget, mode: ActivationCheckpointing = "Auto", like?: Pick<Fitting, "graphs">) {
    this.#threads = threads;
    this.#budget = budget;
    this.#mode = mode;
    this.graphs = like?.graphs ?? new PlanGraphs();
  }

  /** Returns the plan with the largest passes that fit, or else the plan with the smallest passes. */
  best(request: PlanRequest): MemoryPlan {
    const plan = this.#bestOf(request, this.#mode === "Always");
    return this.#mode === "Auto" && !fits(plan, this.#budget) ? this.#bestOf(request, true) : plan;
  }

  #bestOf(request: PlanRequest, checkpointing: boolean): MemoryPlan {
    const { device, devices, adapter, microBatchSize } = request;
    const threads = this.#threads;
    const planner = new Planner({ ...request, checkpointing }, this.graphs);
    const on = (workers: number, placement: Placement = {}) => {
      const tokens = device.kind === "cuda" ? microBatchSize * planner.longest : passTokens({ threads }, workers);
      let plan = planner.plan(tokens, workers, placement);
      while (!fits(plan, this.#budget) && plan.microBatchTokens > planner.longest)
        plan = planner.plan(Math.max(planner.longest, Math.floor(plan.microBatchTokens / 2)), workers, placement);
      return plan;
    };
    const workers = workerCount({ threads, device, adapter, ...(devices && { devices }) });
    const plan = on(workers);
    if (fits(plan, this.#budget))
      return planner.canWiden
        ? widest(plan, planner.plan(plan.microBatchTokens, workers, { widens: true }), this.#budget)
        : plan;
    // numbers cross the bus once a step, and models a few times an iteration; layers would be recomputed in every pass
    if (planner.canOffload) {
      const offloaded = on(workers, { offloads: true });
      return fits(offloaded, this.#budget) ? offloaded : on(workers, { offloads: true, swaps: true });
    }
    // Weights stay on the device; a graph allocates its memory anew in each call.
    if (device.kind === "cuda") return on(workers, { swaps: true });
    // threads of a CPU can run one pass together
    return workers > 1 ? on(1) : plan;
  }

  /** Returns changes that make a refused request fit, as manifest fields: single ones or, if no single one is enough, several together. */
  remedies(request: PlanRequest): string[] {
    const { adapter, critic } = request;
    const lora: Change[] = adapter ? [] : [{ name: "model.adaptation.type: LoRA", change: { adapter: LORA } }];
    const grpo: Change[] = critic ? [{ name: "algorithm.baseline: GRPO", change: { critic: false } }] : [];
    const smaller = this.smaller(request);
    const settings = [...[...lora, ...grpo].filter(({ change }) => this.#fits(request, change)), ...smaller];
    const together = settings.length > 0 ? [] : this.#together(request, [...lora, ...grpo]);
    return [...this.#hardware(request), ...settings, ...together].map(({ name }) => name);
  }

  /** Returns the largest number of slots and the longest lengths with which a request fits; both together if neither is enough alone. */
  smaller(request: PlanRequest): Change[] {
    const fitting = (changes: Change[]) => changes.find(({ change }) => this.#fits(request, change));
    const alone = [fitting(fewerSlots(request)), fitting(shorter(request))].filter((found) => found !== undefined);
    return alone.length > 0 ? alone : this.#together(request, []);
  }

  /**
   * Adds the changes one by one until the request fits, then fewer slots, then shorter lengths.
   * @returns the sum; empty if it never fits
   */
  #together(request: PlanRequest, changes: Change[]): Change[] {
    let all: Change = { name: "", change: {} };
    const add = ({ name, change }: Change) => {
      all = { name: all.name ? `${all.name} with ${name}` : name, change: { ...all.change, ...change } };
      return this.#fits(request, all.change);
    };
    if (changes.some(add)) return [all];
    for (const ladder of [fewerSlots(request), shorter(request)]) {
      const found = ladder.find(({ change }) => this.#fits(request, { ...all.change, ...change })) ?? ladder.at(-1);
      if (found && add(found)) return [all];
    }
    return [];
  }

  /** Returns the fewest further GPUs of the same size, and the smallest larger GPUs. */
  #hardware(request: PlanRequest): Change[] {
    const { device, devices = [device] } = request;
    const { gpu } = this.#budget;
    if (device.kind !== "cuda" || !gpu) return [];
    const more = MORE_GPUS.filter((count) => count > devices.length);
    const like = more.find((count) => this.#fits(request, { devices: gpus(count) }));
    const larger = [devices.length, ...more].flatMap((count) =>
      GPU_GIGABYTES.map((gigabytes) => ({ count, gigabytes })).filter(({ gigabytes }) => gigabytes * 1e9 > gpu.bytes),
    );
    const other = larger.find(({ count, gigabytes }) => {
      const budget = { ...this.#budget, gpu: { bytes: gigabytes * 1e9, source: "given" } };
      const fitting = new Fitting(this.#threads, budget, this.#mode, this);
      return fits(fitting.best({ ...request, devices: gpus(count) }), budget);
    });
    const named = (count: number, what: string) => ({
      name: `${count} GPU${count > 1 ? "s" : ""} ${what}`,
      change: {},
    });
    return [
      ...(like === undefined ? [] : [named(like, "like this")]),
      ...(other ? [named(other.count, `of ${other.gigabytes} GB`)] : []),
    ];
  }

  #fits(request: PlanRequest, change: Partial<PlanRequest>): boolean {
    return fits(this.best({ ...request, ...change }), this.#budget);
  }
}

/** Returns half of the slots, a quarter, and so on. */
function fewerSlots({ generationBatchSize }: PlanRequest): Change[] {
  return halves(generationBatchSize, FEW_SLOTS).map((slots) => ({
    name: `model.generationBatchSize: ${slots}`,
    change: { generationBatchSize: slots },
  }));
}

/** Returns half of both lengths, a quarter, and so on. */
function shorter({ maxPromptTokens, maxResponseTokens }: PlanRequest): Change[] {
  const responses = halves(maxResponseTokens, SHORT_TOKENS);
  return halves(maxPromptTokens, SHORT_TOKENS).flatMap((prompt, i) => {
    const response = responses[i];
    if (response === undefined) return [];
    const name = `model.maxPromptTokens: ${prompt} and model.maxResponseTokens: ${response}`;
    return [{ name, change: { maxPromptTokens: prompt, maxResponseTokens: response } }];
  });
}

function halves(number: number, least: number): number[] {
  const half = Math.floor(number / 2);
  return half < least ? [] : [half, ...halves(half, least)];
}

/** A manifest's default rank. */
export const LORA = { rank: 16, alpha: 16, targets: PROJECTIONS, seed: 0 };

export const gpus = (count: number): (Device & { kind: "cuda" })[] =>
  Array.from({ length: count }, (_, id) => ({ kind: "cuda", id }));

export const fits = (plan: MemoryPlan, { host, gpu }: Budget): boolean =>
  !(host && plan.hostBytes > host.bytes) && !(gpu && plan.gpuBytes > gpu.bytes);

/**
 * A plan takes float32 copies of half-precision matrices if it needs at most this share of the memory with them: programs need memory, too.
 */
const WIDE_SHARE = 0.5;

/** Returns the plan with float32 copies of half-precision matrices where there is room for them, else the plan without. */
export const widest = (plan: MemoryPlan, wide: MemoryPlan, { host }: Budget): MemoryPlan =>
  host && wide.hostBytes <= WIDE_SHARE * host.bytes ? wide : plan;

/**
 * Returns one line about a plan that does not fit: its four largest parts in the memory that is short (the GPU's first), and their
 * settings.
 *
 * @param governing the settings that shrink each part
 */
export function shortage(
  plan: MemoryPlan,
  { host, gpu }: Budget,
  governing: Readonly<Record<PlanPart, readonly string[]>>,
  what = "the run",
): string {
  const onGpu = gpu !== undefined && plan.gpuBytes > gpu.bytes;
  const [which, available, place] = onGpu
    ? (["gpuBytes", gpu, `memory on ${namesOf(plan)}`] as const)
    : (["hostBytes", host!, "memory"] as const);
  const largest = plan.rows
    .filter((row) => row[which] > 0)
    .sort((a, b) => b[which] - a[which])
    .slice(0, 4)
    .map(({ what, [which]: bytes }) => `${what} ${size(bytes)} (${governing[what].join(", ") || "no setting"})`);
  return (
    `${what} needs about ${size(plan[which])} of ${place}, but ${size(available.bytes)} is ${available.source}; ` +
    `the largest parts, and the settings of each: ${largest.join("; ")}`
  );
}

type Request = PlanRequest & { mode: ActivationCheckpointing };

/**
 * The manifest's settings that make a row of the plan smaller, with a value if the setting is no number. A refused plan already has passes
 * of one sequence, so `algorithm.microBatchSize` changes nothing.
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

/** Returns the names of the GPUs that a plan uses. */
const namesOf = ({ device, devices = [device] }: MemoryPlan) =>
  `${devices.length > 1 ? "each of " : ""}${deviceNames(devices)}`;

/** Returns the plan as a table for a terminal or a log. */
export function planTable(plan: MemoryPlan, budget: Budget): string[] {
  const gpu = plan.device.kind === "cuda";
  const total = (bytes: number, available: AvailableMemory | undefined, unknown = "") =>
    size(bytes) + (available ? ` of ${size(available.bytes)} ${available.source}` : unknown);
  const host = total(plan.hostBytes, budget.host);
  const onGpu = () => total(plan.gpuBytes, budget.gpu, " of a size that nvidia-smi does not say");
  const head = gpu
    ? `memory plan: on ${namesOf(plan)} ${onGpu()}; here ${host}`
    : `memory plan: ${host}${plan.microBatchTokens > 0 ? `; micro-batches of ${plan.microBatchTokens} tokens` : ""}`;
  const cells = (bytes: number) => (bytes > 0 ? size(bytes) : "-").padStart(9);
  const line = ({ what, detail, hostBytes, gpuBytes }: MemoryPlan["rows"][number]) =>
    `  ${what.padEnd(13)}${gpu ? cells(gpuBytes) : ""}${cells(hostBytes)}  ${detail}`;
  return [head, ...plan.rows.map(line)];
}

/** Returns bytes in decimal units, for people. */
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
