/** Creates, drains and removes actors according to the plan, and reports ends of their containers to the learner. */

import type { TerminationMessage } from "../../../../proto/service.ts";
import { type Look, recordEvent } from "../../context.ts";
import { DRAINING, INPUT_HASH, QUEUE_NAME } from "../../desired/names.ts";
import type { Settings } from "../../desired/settings.ts";
import { JOB, type Job } from "../../kube/resources.ts";
import { isActive, type ObservedActor } from "../../observe.ts";
import { isSeen } from "../../pin.ts";
import type { Finding } from "../../status/conditions.ts";
import type { StepResult } from "../../steps.ts";
import { BlockedError, checkPodTemplate, writeBlocker } from "../../writes/refusals.ts";
import { resumeJob } from "../../writes/resume-job.ts";
import { coveredActors } from "../admission/queue.ts";
import type { ActorCertificates } from "../certificates/actor-certificates.ts";
import { isDisrupted } from "./actor-state.ts";
import type { Stabiliser } from "./autoscale.ts";
import { desiredActor, slotOf } from "./desired.ts";
import { describeScaling, drainingNote, isDraining, type ScalePlan } from "./scale.ts";

/** Time until the next try after a refusal that only a person can resolve. */
const REFUSED_SECONDS = 15;
/** How many names are tried for an actor if Jobs of other owners have these names. */
const NAME_TRIES = 8;
/** An actor that does not report that it drains is told again after this time. */
const TELL_AGAIN_SECONDS = 10;
/** Only ends of containers that are no older than this are reported; older ones were decided long ago. */
const TERMINATION_SECONDS = 900;

export interface ActorsMemory extends ActorCertificates {
  stabiliser: Stabiliser;
  /** The setting that the stabiliser was created for. */
  scaleDownSeconds: number;
  /** Actors that were told to leave, by name: the learner that told them, and the time. */
  toldToDrain: ReadonlyMap<string, { instance: string; atMs: number }>;
  /** Terminations that were reported to the learner. */
  reported: ReadonlySet<string>;
  /** Disrupted actors, by name: the learner to which the disruption was reported. */
  toldDisrupted: ReadonlyMap<string, string>;
  /** Time since which the learner does not hear a running actor, by name. */
  silentSinceMs: ReadonlyMap<string, number>;
  /** Why no actor could be created, and the time of the next try. */
  refusal: { finding: Finding; generation: number; untilMs: number } | undefined;
}

type Result = StepResult<ActorsMemory>;
type ActorsLook = Look<ActorsMemory>;

/** Marks the Jobs of actors that must leave. @param inputs digest of an actor's inputs @throws ApiError that a retry may resolve */
export async function markActors(look: Look, plan: ScalePlan, inputs: string): Promise<void> {
  const { writes, nowMs } = look;
  announceScaling(look, plan);
  await markInputs(look, inputs);
  for (const { actor, reason } of plan.drain)
    await writes.patch(JOB, actor.job, { metadata: { annotations: { [DRAINING]: drainingNote(nowMs, reason) } } });
}

/** Resumes Jobs of actors that were suspended by hand. @throws ApiError that a retry may resolve */
export async function resumeActors(look: Look, { remove, drain }: ScalePlan): Promise<void> {
  const leaves = new Set([...remove, ...drain].map(({ actor }) => actor));
  for (const actor of look.observed.actors) if (isActive(actor) && !leaves.has(actor)) await resumeJob(look, actor.job);
}

/** Removes and creates actors. `refused`: why no actor could be created. @throws ApiError that a retry may resolve */
export async function replaceActors(look: ActorsLook, plan: ScalePlan, inputs: string): Promise<Result> {
  for (const { actor, reason } of plan.remove) {
    await look.writes.remove(JOB, actor.job);
    const note = `Job ${actor.name} is removed, and another actor replaces it: ${reason}`;
    if (actor.state === "orphaned") recordEvent(look, "Repaired", note);
    look.context.log.info({ run: look.key, actor: actor.name, reason }, "removed an actor");
  }
  return plan.create.length === 0 ? {} : tryToCreate(look, plan, inputs);
}

/** Creates actors, except shortly after a refusal, so that a full quota is not tried again at every event. */
async function tryToCreate(look: ActorsLook, plan: ScalePlan, inputs: string): Promise<Result> {
  const { memory, nowMs, observed } = look;
  const { generation } = observed.run.metadata;
  const known = memory.refusal;
  if (known && known.generation === generation && nowMs < known.untilMs) return { refused: known.finding };
  try {
    await createActors(look, plan, inputs);
    return { remember: { refusal: undefined } };
  } catch (error) {
    const finding = writeBlocker(error, observed.run);
    if (!finding) throw error;
    const untilMs = nowMs + REFUSED_SECONDS * 1000;
    return { refused: finding, remember: { refusal: { finding, generation, untilMs } } };
  }
}

function announceScaling(look: Look, plan: ScalePlan): void {
  const { run } = look.observed;
  const before = run.status?.actors?.desired;
  const text = describeScaling(before, plan, run);
  if (text === undefined) return;
  const direction = plan.desired! > (before ?? 0) ? "up" : "down";
  recordEvent(look, direction === "up" ? "ScaledUp" : "ScaledDown", text);
  look.context.metrics.scaled(labelsOf(look), direction);
}

export function labelsOf({ observed: { run } }: Look): { namespace: string; run: string } {
  return { namespace: run.metadata.namespace, run: run.metadata.name };
}

/** Creates in batches of 1, 2, 4 …, so that a full quota refuses once and not for each actor. */
async function createActors(look: Look, { create }: ScalePlan, inputs: string): Promise<void> {
  const { run } = look.observed;
  const { settings } = look;
  if (create.length > 0) checkPodTemplate(run, "actors", "an actor's Job");
  let covered = placesInWorkload(look.observed, settings);
  for (let from = 0, size = 1; from < create.length; from += size, size *= 2) {
    const made = await Promise.allSettled(
      create.slice(from, from + size).map(async ({ index, generation }) => {
        const queued = covered-- <= 0;
        await createActor(look, (past) => {
          const job = desiredActor(run, index, generation + past, settings, queued);
          Object.assign(job.metadata.annotations!, { [INPUT_HASH]: inputs });
          return job;
        });
      }),
    );
    const failed = made.find((it) => it.status === "rejected");
    if (failed) throw failed.reason;
  }
}

/** Adds the input hash to Jobs of actors that longrun 0.2 or earlier created: they count as created from the present spec. */
async function markInputs(look: Look, inputs: string): Promise<void> {
  const { observed, writes } = look;
  if (!isSeen(observed.run)) return;
  const unmarked = observed.actors.filter(
    (actor) => isActive(actor) && actor.job.metadata.annotations?.[INPUT_HASH] === undefined,
  );
  for (const { job } of unmarked) await writes.patch(JOB, job, { metadata: { annotations: { [INPUT_HASH]: inputs } } });
}

/**
 * Creates an actor's Job. If another owner's Job has its name, the actor gets the name of the next generation.
 *
 * @param jobOf returns the Job, `past` generations after the next one. @throws BlockedError | ApiError
 */
async function createActor(look: Look, jobOf: (past: number) => Job): Promise<void> {
  let taken: BlockedError | undefined;
  for (let past = 0; past < NAME_TRIES; past++) {
    const job = jobOf(past);
    try {
      await look.writes.create(JOB, job);
      if (taken) recordEvent(look, taken.reason, `${taken.message}; meanwhile the actor is ${job.metadata.name}`);
      return;
    } catch (error) {
      if (!(error instanceof BlockedError)) throw error;
      taken ??= error;
    }
  }
  throw taken;
}

/** Returns how many more actors fit into the Workload that Kueue admitted; further actors queue by themselves. */
function placesInWorkload({ workload, actors }: Look["observed"], { kueue }: Settings): number {
  if (!kueue) return 0;
  const inIt = actors.filter(
    (actor) => isActive(actor) && !isDraining(actor) && actor.job.metadata.labels?.[QUEUE_NAME] === undefined,
  );
  return coveredActors(workload) - inIt.length;
}

/** Tells each learner once which actors must leave, and again if the learner does not report that an actor drains. */
export function tellToDrain(look: ActorsLook, plan: ScalePlan): Result {
  const { key, observed, memory, context, nowMs } = look;
  const { link, learnerPod } = observed;
  if (!link?.connected) return {};
  const draining = observed.actors.filter((actor) => isActive(actor) && isDraining(actor));
  const leaving = [...plan.drain, ...draining.map((actor) => ({ actor, reason: "" }))];
  const instance = learnerPod?.metadata.uid ?? "";
  const names = new Set(leaving.map(({ actor }) => actor.name));
  const remember = { toldToDrain: new Map([...memory.toldToDrain].filter(([name]) => names.has(name))) };
  const untold = leaving.filter(({ actor: { name, draining, connected } }) => {
    const told = memory.toldToDrain.get(name);
    if (told?.instance !== instance) return !draining;
    return connected && !draining && nowMs - told.atMs > TELL_AGAIN_SECONDS * 1000;
  });
  if (untold.length === 0) return { remember };
  const actors = untold.map(({ actor }) => actor.name);
  const reason = untold[0]!.reason || noteOf(untold[0]!.actor);
  const work = async (): Promise<Partial<ActorsMemory>> => {
    await context.links.drainActors(key, actors, reason);
    recordEvent(look, "Draining", `${actors.join(", ")} finish their executions and leave: ${reason}`);
    const told = actors.map((name) => [name, { instance, atMs: nowMs }] as const);
    return { toldToDrain: new Map([...memory.toldToDrain, ...told]) };
  };
  return { remember, call: { kind: "drainActors", work } };
}

function noteOf({ job }: ObservedActor): string {
  return (job.metadata.annotations?.[DRAINING] ?? "").split(" ").slice(1).join(" ");
}

/** Reports killed sandboxes to the learner: an execution that took too much memory failed and was not lost. */
export function reportTerminations(look: ActorsLook): Result {
  const { key, observed, memory, context } = look;
  if (!observed.link?.connected) return {};
  const found = observed.actors.flatMap((actor) => terminationsOf(actor, look.nowMs));
  const ids = new Set(found.map(idOf));
  const remember = { reported: new Set([...memory.reported].filter((id) => ids.has(id))) };
  const untold = found.filter((it) => !memory.reported.has(idOf(it)));
  if (untold.length === 0) return { remember };
  const work = async (): Promise<Partial<ActorsMemory>> => {
    await context.links.reportTerminations(key, untold);
    for (const { actor, slot, reason, exitCode } of untold)
      recordEvent(look, "SandboxTerminated", `sandbox ${slot} of ${actor} ended: ${reason}, status ${exitCode}`);
    return { reported: new Set([...memory.reported, ...untold.map(idOf)]) };
  };
  return { remember, call: { kind: "reportTerminations", work } };
}

/** Reports disrupted actors to the learner: their lost executions do not count as attempts. */
export function reportDisruptions(look: ActorsLook): Result {
  const { key, observed, memory, context } = look;
  const { link, learnerPod } = observed;
  if (!link?.connected) return {};
  const instance = learnerPod?.metadata.uid ?? "";
  const names = observed.actors.filter(isDisrupted).map(({ name }) => name);
  const remember = { toldDisrupted: new Map([...memory.toldDisrupted].filter(([name]) => names.includes(name))) };
  // A restarted learner does not know them.
  const untold = names.filter((name) => memory.toldDisrupted.get(name) !== instance);
  if (untold.length === 0) return { remember };
  const work = async (): Promise<Partial<ActorsMemory>> => {
    await context.links.reportTerminations(key, [], untold);
    const unheard = untold.filter((name) => !memory.toldDisrupted.has(name));
    const note = `${unheard.join(", ")}: evicted, preempted, deleted or on a lost node; unfinished executions run again and lose no attempt`;
    if (unheard.length > 0) recordEvent(look, "ActorsDisrupted", note);
    return { toldDisrupted: new Map([...memory.toldDisrupted, ...untold.map((name) => [name, instance] as const)]) };
  };
  return { remember, call: { kind: "reportDisruptions", work } };
}

const idOf = ({ actor, slot, finishedUnixMs }: TerminationMessage) => `${actor}/${slot}/${finishedUnixMs}`;

function terminationsOf({ name, pod }: ObservedActor, nowMs: number): TerminationMessage[] {
  return (pod?.status?.initContainerStatuses ?? []).flatMap(({ name: container, state, lastState }) => {
    const slot = slotOf(container);
    if (slot === undefined) return [];
    return [state?.terminated, lastState?.terminated].flatMap((ended) => {
      const finishedUnixMs = Date.parse(ended?.finishedAt ?? "");
      if (!ended || ended.exitCode === 0 || !(nowMs - finishedUnixMs < TERMINATION_SECONDS * 1000)) return [];
      return [{ actor: name, slot, reason: ended.reason ?? "Error", exitCode: ended.exitCode, finishedUnixMs }];
    });
  });
}
