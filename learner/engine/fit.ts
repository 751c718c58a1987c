/** Whether a run fits into memory: picks its micro-batch, says what it takes, or what to change. */

import type { AvailableMemory } from "./available-memory.ts";
import { size } from "./bytes.ts";
import type { ActivationCheckpointing } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { passTokens, ranksOf } from "./microbatches.ts";
import { blocksOf } from "./model/decoder.ts";
import { ModelError } from "./model/errors.ts";
import { PROJECTIONS } from "./model/lora.ts";
import { longestOf, type MemoryPlan, Planner, type PlanRequest, RunGraphs } from "./plan.ts";
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
  { maxPromptTokens: prompt, maxResponseTokens: response }: Lengths,
  positions: number,
  place = "",
): void {
  if (prompt + response <= positions) return;
  const each: [field: string, most: number][] = [
    ["model.maxResponseTokens", positions - prompt],
    ["model.maxPromptTokens", positions - response],
  ];
  const enough = each.filter(([, most]) => most >= LEAST_TOKENS).map(([field, most]) => `${field} to ${most} or less`);
  const remedy = enough.length > 0 ? enough.join(", or ") : `both lower, to ${positions} together or less`;
  throw new ModelError(
    "generation",
    `${place}model.maxPromptTokens and model.maxResponseTokens are ${prompt} + ${response} tokens, but model.policy has ` +
      `${positions} positions (max_position_embeddings): set ${remedy}`,
  );
}

type Lengths = Pick<PlanRequest, "maxPromptTokens" | "maxResponseTokens">;

/**
 * The plan of a run. Its passes have as many tokens as are fastest (on a CPU few stay in the caches, a GPU takes as many as
 * there are), or as fit.
 *
 * @param threads of the CPU; 0: all cores
 * @param mode whether layers are recomputed in the backward pass; Auto: where a single sequence does not fit otherwise
 * @throws EngineError `memory`, one line that says what to change; ModelError for a folder that cannot be used
 */
export function fitRun(
  request: PlanRequest,
  threads: number,
  budget: Budget,
  mode: ActivationCheckpointing = "Auto",
): MemoryPlan {
  const onGpu = request.device.kind === "cuda";
  const built = new Map<string, RunGraphs>();
  const once = (wanted: PlanRequest) => {
    const key = JSON.stringify([wanted.adapter, wanted.critic, wanted.checkpointing, blocksOf(longestOf(wanted))]);
    const graphs = built.get(key) ?? new RunGraphs(wanted);
    built.set(key, graphs);
    const planner = new Planner(wanted, graphs);
    const on = (ranks: number) => {
      const tokens = onGpu ? wanted.microBatchSize * planner.longest : passTokens({ threads }, ranks);
      let plan = planner.plan(tokens, ranks);
      while (!fits(plan, budget) && plan.microBatchTokens > planner.longest)
        plan = planner.plan(Math.max(planner.longest, Math.floor(plan.microBatchTokens / 2)), ranks);
      return plan;
    };
    const ranks = ranksOf({ threads, device: wanted.device, adapter: wanted.adapter });
    const plan = on(ranks);
    return ranks > 1 && !fits(plan, budget) ? on(1) : plan;
  };
  const attempt = (wanted: PlanRequest) => {
    const plan = once({ ...wanted, checkpointing: mode === "Always" });
    return mode === "Auto" && !fits(plan, budget) ? once({ ...wanted, checkpointing: true }) : plan;
  };
  const plan = attempt(request);
  if (fits(plan, budget)) return plan;
  throw new EngineError(
    "memory",
    `${shortage(plan, budget)}; ${remedies(request, budget, attempt, scarce(plan, budget).which)}`,
  );
}

function fits(plan: MemoryPlan, { host, gpu }: Budget): boolean {
  return !(host && plan.hostBytes > host.bytes) && !(gpu && plan.gpuBytes > gpu.bytes);
}

/** The memory that is short, of a plan that does not fit: the GPU's first. */
function scarce(plan: MemoryPlan, { host, gpu }: Budget) {
  return gpu !== undefined && plan.gpuBytes > gpu.bytes
    ? { which: "gpuBytes" as const, place: deviceName(plan.device), there: gpu }
    : { which: "hostBytes" as const, place: "memory", there: host! };
}

function shortage(plan: MemoryPlan, budget: Budget): string {
  const { which, place, there } = scarce(plan, budget);
  const largest = plan.rows
    .filter((row) => row[which] > 0)
    .sort((a, b) => b[which] - a[which])
    .slice(0, 4)
    .map((row) => `${row.what} ${size(row[which])}`);
  const need = `the run needs about ${size(plan[which])} of ${place === "memory" ? place : `memory on ${place}`}`;
  return `${need} (${largest.join(", ")}), but ${size(there.bytes)} is ${there.source}`;
}

/** What remedies offer. */
const RANK = 16;
const SHORT_TOKENS = 256;

/** Each change by itself, those that suffice, with what they take of the memory that is short. */
function remedies(
  request: PlanRequest,
  budget: Budget,
  attempt: (request: PlanRequest) => MemoryPlan,
  short: "gpuBytes" | "hostBytes",
): string {
  const taken = (plan: MemoryPlan) => size(plan[fits(plan, budget) ? short : scarce(plan, budget).which]);
  const lora = { rank: RANK, alpha: RANK, targets: PROJECTIONS, seed: 0 };
  const halves = (
    field: "maxResponseTokens" | "maxPromptTokens" | "generationBatchSize",
    least: number,
  ): [string, PlanRequest][] => {
    const values: number[] = [];
    for (let value = request[field] >> 1; value >= least; value >>= 1) values.push(value);
    return values.map((value) => [`model.${field} ${value}`, { ...request, [field]: value }]);
  };
  const changes: [what: string, changed: PlanRequest][][] = [
    request.adapter ? [] : [[`model.adaptation {type: LoRA, rank: ${RANK}}`, { ...request, adapter: lora }]],
    halves("generationBatchSize", request.samplesPerPrompt),
    halves("maxResponseTokens", 64),
    halves("maxPromptTokens", 64),
    request.instrumenter ? [["model.instrumenter Syntax", { ...request, instrumenter: undefined }]] : [],
    request.critic ? [["algorithm.baseline GRPO or RLOO (no critic)", { ...request, critic: false }]] : [],
  ];
  const enough = changes.flatMap((tries) => {
    for (const [what, changed] of tries) {
      const plan = attempt(changed);
      if (fits(plan, budget)) return [`${what} (${taken(plan)})`];
    }
    return [];
  });
  if (enough.length > 0) return `set ${enough.join(", or ")}`;
  const maxPromptTokens = Math.min(request.maxPromptTokens, SHORT_TOKENS);
  const maxResponseTokens = Math.min(request.maxResponseTokens, SHORT_TOKENS);
  const last = attempt({
    ...request,
    adapter: request.adapter ?? lora,
    critic: false,
    maxPromptTokens,
    maxResponseTokens,
    generationBatchSize: request.samplesPerPrompt,
  });
  const all = `LoRA without a critic, ${maxPromptTokens} + ${maxResponseTokens} tokens and ${request.samplesPerPrompt} generated side by side need ${taken(last)}`;
  return fits(last, budget)
    ? `no single change is enough, but together they are: ${all}`
    : `take a smaller model or more memory: even ${all}`;
}

/** A table for a terminal or a log. */
export function planTable(plan: MemoryPlan, budget: Budget): string[] {
  const gpu = plan.device.kind === "cuda";
  const total = (bytes: number, there: AvailableMemory | undefined, unknown = "") =>
    size(bytes) + (there ? ` of ${size(there.bytes)} ${there.source}` : unknown);
  const host = total(plan.hostBytes, budget.host);
  const head = gpu
    ? `memory plan: on ${deviceName(plan.device)} ${total(plan.gpuBytes, budget.gpu, " of a size that nvidia-smi does not say")}; here ${host}`
    : `memory plan: ${host}; micro-batches of ${plan.microBatchTokens} tokens`;
  const cells = (bytes: number) => (bytes > 0 ? size(bytes) : "-").padStart(9);
  return [
    head,
    ...plan.rows.map(
      ({ what, detail, hostBytes, gpuBytes }) =>
        `  ${what.padEnd(13)}${gpu ? cells(gpuBytes) : ""}${cells(hostBytes)}  ${detail}`,
    ),
  ];
}
