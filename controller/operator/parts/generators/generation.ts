/** Computes the desired number of generators and the state of the existing ones. Pure. */
import type { GenerationStatus } from "../../../../crds/trainingrun.ts";
import type { Observed } from "../../observe.ts";
import { podBlocker, withNames } from "../../status/blockers.ts";
import { condition, type Finding, type NewCondition } from "../../status/conditions.ts";
import { type Demand, desiredActors, type Stabiliser } from "../actors/autoscale.ts";
import { demandOf } from "../actors/scale.ts";
import { GENERATORS_SET } from "../admission/desired.ts";
import type { Stage } from "../lifecycle/lifecycle.ts";

/** A generator that the learner has not used for this long is reported: new weights of a large model take minutes. */
export const UNUSED_SECONDS = 300;

export interface GenerationPlan {
  /** Desired number of generators. */
  replicas: number;
  /** Solutions that wait for a generator or are being written; undefined: the learner has not reported them. */
  demand: Demand | undefined;
  /** Seconds until fewer may be enough, though nothing changes. */
  againSeconds: number | undefined;
}

export interface GenerationOptions {
  stage: Stage;
  stabiliser: Stabiliser;
  /** Unix milliseconds. */
  nowMs: number;
}

/** Returns the learner's demand for generators; undefined while the learner is away, starting or stopping. */
function promptsOf(observed: Observed): Demand | undefined {
  const said = observed.link?.status?.generation;
  if (!said || demandOf(observed) === undefined) return undefined;
  return {
    queued: said.waitingPrompts,
    running: said.generators.reduce((sum, { running }) => sum + running, 0),
  };
}

/**
 * Returns the desired number of generators. It rises with the waiting prompts at once and falls after the stabilisation window. It is 0
 * before the learner may start and after its end, and never above the number that Kueue has admitted.
 *
 * @returns undefined if the run has and had no generators
 */
export function planGeneration(
  observed: Observed,
  { stage, stabiliser, nowMs }: GenerationOptions,
): GenerationPlan | undefined {
  const { run, generators, workload } = observed;
  const { generation, model } = run.spec;
  const before = run.status?.generation?.replicas;
  const none = { replicas: 0, demand: undefined, againSeconds: undefined };
  if (!generation) return generators.deployment ? none : undefined;
  // A learner that stops ends its open responses first, and needs its generators until then.
  if (stage === "Suspending" || stage === "Ending") return { ...none, replicas: before ?? 0 };
  if (stage !== "Running") return none;
  const { min, max } = generation.replicas;
  const admitted = workload?.status?.admission?.podSetAssignments?.find(({ name }) => name === GENERATORS_SET)?.count;
  const most = Math.min(max, admitted ?? max);
  const bounded = (replicas: number) => Math.min(most, Math.max(min, replicas));
  const demand = promptsOf(observed);
  if (!demand) return { ...none, replicas: bounded(before ?? 0) };
  const slots = model.generationBatchSize;
  const wanted = desiredActors(demand, { min, max: most, slots, autoscaling: "Demand" });
  const replicas = bounded(stabiliser.next(wanted, nowMs / 1000));
  return { replicas, demand, againSeconds: replicas > wanted ? generation.scaleDownSeconds : undefined };
}

/** Returns e.g. `scaled generators 1 -> 3: 120 prompts wait, 64 are written, 64 at once each`; undefined if the number stays. */
export function describeGeneration({ run }: Observed, { replicas, demand }: GenerationPlan): string | undefined {
  const before = run.status?.generation?.replicas;
  if (!demand || before === undefined || before === replicas) return undefined;
  const { generationBatchSize } = run.spec.model;
  return `scaled generators ${before} -> ${replicas}: ${demand.queued} prompts wait, ${demand.running} solutions are written, ${generationBatchSize} fit in a generator`;
}

/** Returns the number of generators that are ready by the kubelet's probes. */
export function readyGenerators({ generators }: Observed): number {
  return generators.deployment?.status?.readyReplicas ?? 0;
}

/** Returns `status.generation`. */
export function generationStatus(observed: Observed, plan: GenerationPlan | undefined): GenerationStatus | undefined {
  if (!observed.run.spec.generation || !plan) return undefined;
  const before = observed.run.status?.generation?.policyVersion;
  const used = (observed.link?.status?.generation?.generators ?? []).filter((it) => it.ready && !it.notUsedBecause);
  const versions = used.flatMap(({ policyVersion }) => policyVersion ?? []);
  const policyVersion = versions.length > 0 && versions.length === used.length ? Math.min(...versions) : before;
  return {
    ready: readyGenerators(observed),
    replicas: plan.replicas,
    ...(policyVersion !== undefined && { policyVersion }),
  };
}

/**
 * Returns the generators that a connected learner does not use, by address, each with the time since which it is unused. A generator that
 * is not in `before` counts from now.
 */
export function unusedSince(
  { link }: Observed,
  before: ReadonlyMap<string, number>,
  nowMs: number,
): Map<string, number> {
  const known = (link?.connected ? link.status?.generation?.generators : undefined) ?? [];
  const unused = known.filter(({ notUsedBecause }) => notUsedBecause !== "");
  return new Map(unused.map(({ address }) => [address, before.get(address) ?? nowMs]));
}

interface GenerationFacts {
  plan: GenerationPlan;
  /** The API server's refusal of a generator's object, or a warning event about a pod that does not start. */
  refused: Finding | undefined;
  /** See unusedSince. */
  unusedSinceMs: ReadonlyMap<string, number>;
  /** Unix milliseconds. */
  nowMs: number;
}

/** Returns the condition of a run that has generators. */
export function generationCondition(observed: Observed, facts: GenerationFacts | undefined): NewCondition[] {
  if (!observed.run.spec.generation || !facts) return [];
  const { available, ...finding } = generationFinding(observed, facts);
  return [condition("GenerationAvailable", available, finding)];
}

/** Returns the finding for the condition GenerationAvailable: whether a generator can write. */
export function generationFinding(
  observed: Observed,
  { plan, refused, unusedSinceMs, nowMs }: GenerationFacts,
): Finding & { available: boolean } {
  if (plan.replicas === 0) return { available: false, reason: "NoWork", message: "the run needs no generators now" };
  const ready = readyGenerators(observed);
  const known = observed.link?.status?.generation?.generators ?? [];
  const unused = known.filter(({ address }) => {
    const sinceMs = unusedSinceMs.get(address);
    return sinceMs !== undefined && nowMs - sinceMs >= UNUSED_SECONDS * 1000;
  });
  const why = unused.map(({ address, notUsedBecause }) => `${address}: ${notUsedBecause}`).join("; ");
  if (ready > 0 && unused.length > 0 && unused.length === known.length)
    return {
      available: false,
      ...withNames({ reason: "GeneratorsNotUsed", message: `the learner uses no generator: ${why}` }),
    };
  const blocker = refused ?? podBlockerOf(observed);
  if (ready === 0)
    return blocker
      ? { available: false, reason: blocker.reason, message: `generators wait: ${blocker.message}` }
      : { available: false, reason: "Starting", message: "generators start and load the model" };
  const all = ready >= plan.replicas;
  const but = unused.length > 0 ? `; the learner does not use ${why}` : "";
  const waits = blocker && !all ? `; the others wait: ${blocker.message}` : "";
  const message = `${ready} of ${plan.replicas} generators are ready${but}${waits}`;
  return { available: true, reason: all ? "AsDesired" : "Scaling", message };
}

function podBlockerOf({ generators }: Observed): Finding | undefined {
  for (const pod of generators.pods.filter(({ metadata }) => !metadata.deletionTimestamp)) {
    const blocker = podBlocker(pod, "generation");
    if (blocker) return blocker;
  }
  return undefined;
}
