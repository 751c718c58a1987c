/**
 * Reconciles one TrainingRun. The pure functions of `desired/`, `lifecycle.ts`, `scale.ts` and `status.ts` compute the desired
 * state. Then every object that differs is written, with its uid and version as a precondition, and the status is written last.
 * Objects that do not differ are not written.
 */

import type { TrainingRunStatus } from "../../crds/trainingrun.ts";
import { type Context, type Look, settle, tell } from "./context.ts";
import { learnerHost, type Run } from "./desired/names.ts";
import { withNewerFields } from "./desired/newer-fields.ts";
import { withRunDefaults } from "./desired/run-defaults.ts";
import { TRAINING_RUN } from "./kube/resources.ts";
import type { ReconcileResult } from "./kube/types.ts";
import { hasEnded, hasLearner, type LifecyclePlan, planLifecycle } from "./lifecycle.ts";
import { isActive, isLearnerUp, learnerPhase, observe } from "./observe.ts";
import {
  labelsOf,
  markActors,
  REFUSED_SECONDS,
  replaceActors,
  reportDisruptions,
  reportTerminations,
  tellToDrain,
} from "./parts/actors/actor-jobs.ts";
import { SILENT_ACTOR_SECONDS, silentSince } from "./parts/actors/actor-state.ts";
import { isDraining, planActors, type ScalePlan } from "./parts/actors/scale.ts";
import { findFlavors, placed } from "./parts/admission/flavors.ts";
import type { Admission } from "./parts/admission/queue.ts";
import { admission, reconcileWorkload } from "./parts/admission/workload.ts";
import { reconcileActorCertificates } from "./parts/certificates/actor-certificates.ts";
import { currentLearnerHash, derivedOf, reconcileChildren } from "./parts/children.ts";
import { FINALIZER, lastCheckpoint, reconcileFinalizer, releaseRun, volumeEvent } from "./parts/deletion/deletion.ts";
import { suspendLearner, suspensionOptions } from "./parts/deletion/suspension.ts";
import { type GenerationPlan, planGeneration, UNUSED_SECONDS, unusedSince } from "./parts/generators/generation.ts";
import { reconcileGenerators, stabiliserOf } from "./parts/generators/generators.ts";
import { learnerState } from "./parts/learner/learner-state.ts";
import { isUntold, notify } from "./parts/notification/notification.ts";
import { owesResults, reconcileResults, resultsStatus, untoldFailure } from "./parts/results/results.ts";
import { forceDetach } from "./parts/volume/force-detach.ts";
import { imagesStatus, isKeptActor, pinnedSettings } from "./pin.ts";
import { eventBlocker } from "./status/blockers.ts";
import { HEAR_SECONDS, holdStatus, isUnheard, writeStatus } from "./status/reconcile-status.ts";
import { desiredStatus } from "./status/status.ts";
import { findWarning } from "./status/warnings.ts";
import { type StepResult, tryStep } from "./steps.ts";
import { CONFIRM_SECONDS } from "./writes/expectations.ts";
import { Writes } from "./writes/writes.ts";

/** The value of `spec.managedBy` that selects this controller; an absent field selects it too. */
const MANAGED_BY_US = "longrun.dev/controller";
/** Time for the Deployment to replace a learner that stopped unasked; after it no replacement is expected. */
const STOPPED_SECONDS = 20;
export async function reconcile(key: string, context: Context): Promise<ReconcileResult> {
  const run = context.cache.trainingRun(key);
  if (!run) return forget(key, context);
  if ((run.spec.managedBy ?? MANAGED_BY_US) !== MANAGED_BY_US) return {};
  await context.expectations.confirm(key);
  if (context.expectations.unseen(key).length > 0) return { requeueAfterSeconds: CONFIRM_SECONDS };

  const look = lookAt(key, run, context);
  const again: (number | undefined)[] = [];
  const take = <Result extends StepResult>(result: Result): Result => {
    settle(look, result);
    again.push(result.againSeconds);
    return result;
  };

  take(noteVolume(look));
  take(noteSilence(look));
  take(noteUnused(look));
  if (run.metadata.deletionTimestamp) {
    const { againSeconds } = take(lastCheckpoint(look));
    if (againSeconds === undefined) await releaseRun(look);
    return soonest(again);
  }
  if (isOverdue(look) && !isUntold(look) && !owesResults(look)) return expire(look);
  take(notify(look));

  const { queue } = take(admission(look));
  const place = take(await tryStep(run, () => findPlace(look, queue)));
  const { flavors } = look.memory;
  if (flavors && !place.refused) look.observed.run = placed(look.observed.run, flavors.choices);
  take({ remember: { derived: derivedOf(look) } });
  take(suspend(look, queue));
  const lifecycle = planLifecycle(look.observed, look.memory.suspension, currentLearnerHash(look), queue);
  if (await reconcileFinalizer(look, lifecycle)) return {};

  const queued = place.refused ? place : take(await tryStep(run, () => reconcileQueue(look, lifecycle)));
  const children = take(await reconcileChildren(look, lifecycle, queued.refused));
  const kept = take(await tryStep(run, () => forceDetach(look)));
  const refused = { blocked: children.blocked ?? kept.refused, other: children.other };
  take(await tryStep(run, () => reconcileResults(look)));
  reconcileLink(look, lifecycle);

  const { actorHash, inputs } = derivedOf(look);
  const scale = planActors(look.observed, {
    stage: lifecycle.stage,
    stabiliser: look.memory.stabiliser,
    hash: actorHash,
    keeps: (actor) => isKeptActor(look.observed, actor, inputs),
    nowMs: look.nowMs,
  });
  // Certificates of existing actors come first: these actors need them even if no further actor can be created.
  const certified = take(await tryStep(run, () => reconcileActorCertificates(look)));
  await markActors(look, scale);
  take(tellToDrain(look, scale));
  const replaced = take(await replaceActors(look, scale));
  const actorsRefused = replaced.refused ?? certified.refused;
  take(reportTerminations(look));
  take(reportDisruptions(look));
  take(nextLoss(look));

  const { stabiliser } = take(stabiliserOf(look));
  const generation = planGeneration(look.observed, { stage: lifecycle.stage, stabiliser, nowMs: look.nowMs });
  const generates = queued.refused ? {} : take(await tryStep(run, () => reconcileGenerators(look, generation)));

  const warning = take(await findWarning(look));
  take(notePodless(look));
  const learner = learnerState({
    observed: look.observed,
    lifecycle,
    refused: refused.blocked,
    warning: warning.learner,
    podlessSinceMs: look.memory.podlessSinceMs,
    nowMs: look.nowMs,
  });
  again.push(learner.againSeconds, scale.againSeconds);
  if (refused.blocked ?? refused.other ?? actorsRefused ?? generates.refused) again.push(REFUSED_SECONDS);
  const status = desiredStatus({
    ...{ observed: look.observed, lifecycle, learner, scale, nowMs: look.nowMs },
    written: look.memory.suspension?.checkpoint,
    notification: look.memory.notification,
    images: imagesStatus(look.observed, lifecycle, look.settings),
    results: resultsStatus(look, warning.results),
    refused,
    actorsRefused: actorsRefused ?? (warning.actors && eventBlocker(warning.actors, "spec.actors.podTemplate")),
    ...{ generation, unusedSinceMs: look.memory.unusedSinceMs },
    generationRefused:
      generates.refused ?? (warning.generators && eventBlocker(warning.generators, "spec.generation.podTemplate")),
  });
  const unheard = isUnheard(look);
  if (unheard) again.push(HEAR_SECONDS);
  else {
    const { due } = take(holdStatus(look, status));
    if (due) take(await writeStatus(look, status));
  }
  measure(look, unheard ? (run.status ?? {}) : status, lifecycle, scale, generation);
  again.push(
    isOverdue(look) ? undefined : (expiryMs(look) - look.nowMs) / 1000,
    (Math.min(...certificatesOf(look).map(({ renewAtMs }) => renewAtMs)) - look.nowMs) / 1000,
  );
  return soonest(again);
}

function soonest(again: (number | undefined)[]): ReconcileResult {
  const seconds = Math.min(...again.filter((it) => it !== undefined));
  return Number.isFinite(seconds) ? { requeueAfterSeconds: Math.max(0.1, seconds) } : {};
}

function lookAt(key: string, run: Run, context: Context): Look {
  const nowMs = context.now();
  const memory = context.memories.of(key, run, nowMs);
  const observed = observe(
    withRunDefaults(withNewerFields(run), context.settings.runDefaults),
    context.cache,
    context.links.observed(key),
    { kueue: context.settings.kueue ?? false, nowMs },
  );
  const writes = new Writes(run, { ...context, applied: memory.applied });
  return { key, observed, memory, writes, context, settings: pinnedSettings(observed, context.settings), nowMs };
}

function noteVolume({ observed: { volume }, memory }: Look): StepResult {
  return { remember: { volume: volume?.metadata.name ?? memory.volume } };
}

/** A running actor that the learner has not heard for long is lost, whatever the state of its pod. */
function noteSilence({ observed: { actors, link }, memory, nowMs }: Look): StepResult {
  const silentSinceMs = silentSince(actors, link?.connected ?? false, memory.silentSinceMs, nowMs);
  for (const actor of actors) {
    const sinceMs = silentSinceMs.get(actor.name) ?? nowMs;
    if (nowMs - sinceMs >= SILENT_ACTOR_SECONDS * 1000) actor.state = "lost";
  }
  return { remember: { silentSinceMs } };
}

/** `againSeconds` is the time until an unused generator is reported. */
function noteUnused({ observed, memory, nowMs }: Look): StepResult {
  const unusedSinceMs = unusedSince(observed, memory.unusedSinceMs, nowMs);
  const next = [...unusedSinceMs.values()].map((it) => it + UNUSED_SECONDS * 1000).filter((atMs) => atMs > nowMs);
  return { remember: { unusedSinceMs }, ...(next.length > 0 && { againSeconds: (Math.min(...next) - nowMs) / 1000 }) };
}

/** `againSeconds` is the time until a silent actor or pod counts as lost. */
function nextLoss({ observed, memory, nowMs }: Look): StepResult {
  const silentMs = [...memory.silentSinceMs.values()].map((sinceMs) => sinceMs + SILENT_ACTOR_SECONDS * 1000);
  const next = Math.min(observed.nextLossMs ?? Number.POSITIVE_INFINITY, ...silentMs.filter((atMs) => atMs > nowMs));
  return Number.isFinite(next) ? { againSeconds: (next - nowMs) / 1000 } : {};
}

/** Forgets a run that was deleted with its children. */
function forget(key: string, context: Context): ReconcileResult {
  context.links.drop(key);
  context.expectations.forget(key);
  const memory = context.memories.forget(key);
  if (!memory) return {};
  const { run } = memory;
  const event = { type: "Normal", action: "Delete", ...volumeEvent(run, memory.volume) } as const;
  if (!run.metadata.finalizers?.includes(FINALIZER)) context.events.record(run, event); // otherwise it was recorded already
  const { namespace, name } = run.metadata;
  context.metrics.forget({ namespace, run: name });
  return {};
}

/** Adds the nodes that Kueue chose to an admitted run. */
async function findPlace(look: Look, { state }: Admission): Promise<StepResult> {
  if (state === "admitted" && !hasEnded(look.observed)) return findFlavors(look);
  return { remember: { flavors: undefined } };
}

async function reconcileQueue(look: Look, lifecycle: LifecyclePlan): Promise<StepResult> {
  await reconcileWorkload(look, lifecycle);
  return {};
}

/** Waits for the checkpoint. `againSeconds` is the time until the end of the wait. */
function suspend(look: Look, queue: Admission): StepResult {
  const { observed, memory, nowMs } = look;
  const { run, deployment } = observed;
  const running = (deployment?.spec?.replicas ?? 0) > 0;
  // If an earlier controller process began the suspension, only the learner knows of it.
  const stopped = running && !run.spec.suspend && learnerPhase(observed.link) === "STOPPED";
  const stoppedSinceMs = stopped ? (memory.stoppedSinceMs ?? nowMs) : undefined;
  const forLong = stoppedSinceMs !== undefined && nowMs - stoppedSinceMs >= STOPPED_SECONDS * 1000;
  const evicted = running && queue.state === "waiting" ? queue.finding : undefined;
  if (!run.spec.suspend && !evicted && !(memory.suspension && hasLearner(observed)) && !forLong) {
    const remember = { stoppedSinceMs, suspension: undefined };
    return { remember, againSeconds: stopped ? STOPPED_SECONDS : undefined };
  }
  const result = suspendLearner(look, suspensionOptions(look, evicted));
  return { ...result, remember: { stoppedSinceMs, ...result.remember } };
}

/** Dials a learner whose container runs, and closes the link of a learner that should be gone. */
function reconcileLink({ key, observed, context }: Look, { learnerReplicas }: LifecyclePlan): void {
  const { run, learnerPod } = observed;
  if (learnerReplicas === 0) context.links.drop(key);
  if (learnerReplicas === 0 || !learnerPod || !isLearnerUp(learnerPod)) return;
  const instance = learnerPod.metadata.uid!;
  context.links.ensure(key, { uid: run.metadata.uid, serverName: learnerHost(run), instance });
}

/** Returns the time since which the Deployment should have a pod; after a resume this is later than its creation. */
function notePodless({ observed: { deployment, learnerPod }, memory, nowMs }: Look): StepResult {
  const podless = (deployment?.spec?.replicas ?? 0) > 0 && !learnerPod;
  return { remember: { podlessSinceMs: podless ? (memory.podlessSinceMs ?? nowMs) : undefined } };
}

function expiryMs({ observed }: Look): number {
  const { run } = observed;
  const { completionTime } = run.status ?? {};
  const { ttlSecondsAfterFinished: ttl } = run.spec;
  return completionTime === undefined || ttl === undefined || !hasEnded(observed)
    ? Number.POSITIVE_INFINITY
    : Date.parse(completionTime) + ttl * 1000;
}

function isOverdue(look: Look): boolean {
  return expiryMs(look) <= look.nowMs;
}

async function expire(look: Look): Promise<ReconcileResult> {
  const { run } = look.observed;
  const failure = untoldFailure(look);
  if (failure !== undefined) tell(look, "Warning", "ResultsNotPushed", failure, "Push");
  tell(
    look,
    "Normal",
    "Expired",
    `deleted ${run.spec.ttlSecondsAfterFinished} s after its end (spec.ttlSecondsAfterFinished)`,
    "Delete",
  );
  await look.writes.remove(TRAINING_RUN, run);
  return {};
}

/** Returns the dates of the certificates in use: the learner's with the authority's, the actors' and the generators'. */
function certificatesOf({ memory }: Look): { renewAtMs: number; expireAtMs: number }[] {
  const { certificates, generatorCertificate } = memory;
  return [certificates, generatorCertificate].flatMap((it) => it ?? []).concat(...memory.actorCertificates.values());
}

/** Stages in which a learner should answer. */
const LEARNER_DUE = ["Initialising", "Running", "Refused"];

function measure(
  look: Look,
  status: TrainingRunStatus,
  { stage }: LifecyclePlan,
  { demand, desired }: ScalePlan,
  generation: GenerationPlan | undefined,
): void {
  const { observed, memory } = look;
  const active = observed.actors.filter(isActive);
  const counts = { running: 0, starting: 0, draining: 0 };
  for (const actor of active) counts[isDraining(actor) ? "draining" : (actor.state as "running" | "starting")]++;
  const said = observed.link?.status?.executions;
  look.context.metrics.observe(labelsOf(look), {
    ...{ run: observed.run, status, demand },
    executions: said && {
      ...{ completed: said.completed, lost: said.lost, retried: said.retried, disrupted: said.disrupted },
    },
    actors: { desired, ...counts, idle: status.actors?.idle ?? 0 },
    generators: generation?.replicas ?? 0,
    learnerDue: LEARNER_DUE.includes(stage),
    // A finished run neither uses nor renews its certificates.
    certificatesExpireAtMs:
      stage === "Ended" || !memory.certificates
        ? undefined
        : Math.min(...certificatesOf(look).map(({ expireAtMs }) => expireAtMs)),
  });
}
