/** Plans which actors to create, drain and remove to match the work. Pure. */

import { DRAINING, type Run } from "../../desired/names.ts";
import { isActive, learnerPhase, type Observed, type ObservedActor } from "../../observe.ts";
import type { Stage } from "../lifecycle/lifecycle.ts";
import { isDisrupted } from "./actor-state.ts";
import { actorsToDrain, type Demand, desiredActors, type Stabiliser } from "./autoscale.ts";

/** Share of the desired actors, at least one, that are replaced at a time after a change of the spec. */
const ROLL_SHARE = 0.25;

export interface ScalePlan {
  /** Undefined: the learner has not reported its demand, or is away; present actors stay. */
  desired: number | undefined;
  demand: Demand | undefined;
  create: { index: number; generation: number }[];
  /** Actors to tell that they must take no more leases, finish and exit. */
  drain: { actor: ObservedActor; reason: string }[];
  /** Actors to delete: they run nothing, or their time is over. */
  remove: { actor: ObservedActor; reason: string }[];
  /** Seconds until the next reconcile, even if nothing changes. */
  againSeconds: number | undefined;
  /** Consecutive failures of actors without a success in between. */
  failures: number;
}

/** Why a run has no actors in this stage. */
const WITHOUT_ACTORS: Partial<Record<Stage, string>> = {
  Ended: "the run is over",
  Suspended: "the run is suspended",
  Queued: "the run waits in its queue",
};

/**
 * Such a Job is not adopted: anyone who may create Jobs could create one with the run's labels, and it would count as an actor that never
 * works. Its executions run again.
 */
const ORPHANED = "it has no owner reference";

interface ScaleOptions {
  stage: Stage;
  stabiliser: Stabiliser;
  /** Hash of an actor as it would be created now. */
  hash: string;
  /** Returns whether an actor with another hash stays (pin.ts). */
  keeps?: (actor: ObservedActor) => boolean;
  /** Unix milliseconds. */
  nowMs: number;
}

/** @returns the learner's demand; undefined while it is away, starting or told to stop */
export function demandOf({ link }: Observed): Demand | undefined {
  const phase = learnerPhase(link) ?? "STARTING";
  if (!link?.connected || !link.status || phase === "STARTING" || phase === "STOPPED") return undefined;
  const { queued = 0, running = 0 } = link.status.executions ?? {};
  return { queued, running };
}

/** Returns how long a drained actor's executions may take before they run elsewhere. */
export function drainSeconds({ spec }: Run): number {
  const longest = Math.max(...spec.tasks.map((task) => task.executionTimeoutSeconds));
  return spec.actors.drainSeconds ?? longest + spec.learner.leaseSeconds;
}

export function planActors(observed: Observed, { stage, stabiliser, hash, keeps, nowMs }: ScaleOptions): ScalePlan {
  const { run, actors } = observed;
  const { restart } = run.spec;
  const active = actors.filter(isActive);
  const staying = active.filter((actor) => !isDraining(actor));
  const { failures, notBeforeMs } = failuresOf(actors, restart, nowMs);
  const demand = stage === "Running" && !observed.refusal ? demandOf(observed) : undefined;
  const plan: ScalePlan = {
    desired: undefined,
    demand,
    create: [],
    drain: [],
    remove: actors.filter(({ state }) => state === "orphaned").map((actor) => ({ actor, reason: ORPHANED })),
    againSeconds: undefined,
    failures,
  };
  const lookAgain = (atMs: number) => {
    const seconds = Math.max(0.1, (atMs - nowMs) / 1000);
    plan.againSeconds = Math.min(plan.againSeconds ?? seconds, seconds);
  };

  const over = WITHOUT_ACTORS[stage];
  if (over !== undefined) {
    // Nobody waits for their executions: the results have arrived, or they run again after the resume.
    const reason = over;
    const going = actors.filter((actor) => isActive(actor) || actor.state === "leaving" || actor.state === "lost");
    return { ...plan, desired: 0, remove: [...plan.remove, ...going.map((actor) => ({ actor, reason }))] };
  }
  // Its pod stays until its node is back; until then the Job would wait for it and keep its place in a queue.
  for (const actor of actors.filter(({ state }) => state === "lost"))
    plan.remove.push({ actor, reason: "its node or the actor itself does not answer" });
  for (const actor of active.filter(isDraining)) {
    const overMs = drainingSinceMs(actor) + drainSeconds(run) * 1000;
    if (overMs <= nowMs) plan.remove.push({ actor, reason: "its executions took longer than actors.drainSeconds" });
    else lookAgain(overMs);
  }
  if (plan.demand === undefined) return plan;

  const bounds = run.spec.actors;
  const wanted = desiredActors(plan.demand, bounds);
  const desired = bounds.autoscaling === "External" ? wanted : stabiliser.next(wanted, nowMs / 1000);
  plan.desired = desired;
  if (desired > wanted) lookAgain(nowMs + bounds.scaleDownSeconds * 1000);

  const leaving = chooseLeaving(staying, desired);
  for (const actor of leaving)
    plan[actor.state === "starting" ? "remove" : "drain"].push({ actor, reason: "fewer actors are needed" });
  // The stabilisation window keeps existing actors but never creates new ones: an actor that fails during a scale-down is not replaced.
  const missing = wanted - (staying.length - leaving.length);
  if (missing > 0) {
    const starting = staying.filter(({ state }) => state === "starting").length;
    // While actors fail one after the other, only one at a time is tried.
    const most = failures >= restart.maxFailures ? 1 - starting : bounds.maxStarting - starting;
    if (notBeforeMs > nowMs) lookAgain(notBeforeMs);
    else plan.create = freePlaces(observed, Math.min(missing, most));
  } else if (leaving.length === 0) {
    const isOld = (actor: ObservedActor) => actor.hash !== hash && !keeps?.(actor);
    roll(plan, active, isOld, desired);
  }
  return plan;
}

/** Chooses actors that have not started first, then idle ones, then the least loaded; among equals the youngest. */
function chooseLeaving(staying: ObservedActor[], desired: number): ObservedActor[] {
  const byAge = staying.toSorted(
    (a, b) =>
      (a.job.metadata.creationTimestamp ?? "").localeCompare(b.job.metadata.creationTimestamp ?? "") ||
      a.index - b.index,
  );
  const loads = byAge.map((actor) => ({
    name: actor.name,
    running: actor.state === "starting" ? -1 : actor.executions,
  }));
  const names = new Set(actorsToDrain(loads, desired));
  return staying.filter(({ name }) => names.has(name));
}

/** Replaces actors of an earlier spec, a few at a time: one new actor for each that must leave. */
function roll(plan: ScalePlan, active: ObservedActor[], isOld: (actor: ObservedActor) => boolean, desired: number) {
  const onTheMove = active.filter((actor) => isDraining(actor) || actor.state === "starting").length;
  const most = Math.max(1, Math.floor(desired * ROLL_SHARE)) - onTheMove;
  const old = active.filter((actor) => isOld(actor) && !isDraining(actor));
  const waiting = old.filter(({ state }) => state === "starting");
  const reason = "the specification of actors has changed";
  // Actors that have not started run nothing, so all of them are replaced at once.
  plan.remove.push(...waiting.map((actor) => ({ actor, reason })));
  const running = old.filter(({ state }) => state === "running").sort((a, b) => a.executions - b.executions);
  plan.drain.push(...running.slice(0, Math.max(0, most)).map((actor) => ({ actor, reason })));
}

/** Returns the lowest free indices, each with its next generation. */
function freePlaces({ actors }: Observed, count: number): { index: number; generation: number }[] {
  const taken = new Set(actors.filter(isActive).map(({ index }) => index));
  const newest = new Map<number, number>();
  for (const { index, generation } of actors) newest.set(index, Math.max(generation, newest.get(index) ?? -1));
  const places: { index: number; generation: number }[] = [];
  for (let index = 0; places.length < count; index++)
    if (!taken.has(index)) places.push({ index, generation: (newest.get(index) ?? -1) + 1 });
  return places;
}

/**
 * Returns the failures since the last actor that ended well or lived long enough, and when the next actor may be created. Disrupted actors
 * do not count as failures, but repeated disruptions, for example by a node without memory, lead to the same waits.
 */
function failuresOf(
  actors: ObservedActor[],
  restart: Run["spec"]["restart"],
  nowMs: number,
): { failures: number; notBeforeMs: number } {
  const stableMs = restart.stableSeconds * 1000;
  const ended = actors
    .filter(({ state }) => state === "succeeded" || state === "failed")
    .sort((a, b) => endedMs(b) - endedMs(a));
  /** @param of actors, newest first */
  const inARow = (actors: ObservedActor[]) => {
    const last = actors.findIndex((actor) => actor.state !== "failed" || endedMs(actor) - startedMs(actor) > stableMs);
    const times = last === -1 ? actors.length : last;
    const seconds = Math.min(restart.maxBackoffSeconds, restart.backoffSeconds * 2 ** (times - 1));
    return { times, notBeforeMs: times === 0 ? 0 : endedMs(actors[0]!) + seconds * 1000 };
  };
  const stable = actors.some((actor) => actor.state === "running" && nowMs - startedMs(actor) > stableMs);
  const failed = inARow(stable ? [] : ended.filter((actor) => !isDisrupted(actor)));
  const disrupted = inARow(ended.filter((actor) => actor.state === "succeeded" || isDisrupted(actor)));
  return { failures: failed.times, notBeforeMs: Math.max(failed.notBeforeMs, disrupted.notBeforeMs) };
}

function endedMs({ job }: ObservedActor): number {
  const times = job.status?.conditions?.map(({ lastTransitionTime }) => Date.parse(lastTransitionTime ?? ""));
  return Math.max(0, ...(times ?? []).filter(Number.isFinite));
}

function startedMs({ job, pod }: ObservedActor): number {
  return Date.parse(pod?.status?.startTime ?? job.status?.startTime ?? job.metadata.creationTimestamp ?? "") || 0;
}

export function isDraining({ job }: ObservedActor): boolean {
  return job.metadata.annotations?.[DRAINING] !== undefined;
}

/** Returns the annotation of an actor's Job from when the actor is told to leave. */
export function drainingNote(nowMs: number, reason: string): string {
  return `${new Date(nowMs).toISOString()} ${reason}`;
}

function drainingSinceMs({ job }: ObservedActor): number {
  return Date.parse(job.metadata.annotations?.[DRAINING]?.split(" ")[0] ?? "") || 0;
}

/** @returns e.g. `scaled actors 2 -> 6: 24 executions wait or run, 4 slots each`; undefined if the number is the same */
export function describeScaling(
  before: number | undefined,
  { desired, demand }: ScalePlan,
  run: Run,
): string | undefined {
  if (desired === undefined || demand === undefined || desired === (before ?? 0)) return undefined;
  const { autoscaling, slots } = run.spec.actors;
  const step = `scaled actors ${before ?? 0} -> ${desired}`;
  if (autoscaling === "External") return `${step}: by spec.actors.replicas`;
  const counts = [
    demand.queued > 0 ? `${demand.queued} executions wait` : "",
    demand.running > 0 ? `${demand.running} run` : "",
  ].filter(Boolean);
  const why =
    counts.length === 0
      ? "no execution waits or runs"
      : `${counts.join(", ")}, ${slots} ${slots === 1 ? "slot" : "slots"} each`;
  const bound = boundThatHolds(desired, demand, run);
  return `${step}: ${why}${bound ? ` (${bound})` : ""}`;
}

function boundThatHolds(desired: number, { queued, running }: Demand, { spec: { actors } }: Run): string | undefined {
  const asked = Math.ceil((queued + running) / actors.slots);
  if (asked > desired && desired === actors.max) return `actors.max is ${actors.max}`;
  return asked < desired && desired === actors.min ? `actors.min is ${actors.min}` : undefined;
}
