/**
 * One look at one TrainingRun, and what follows from it. What is desired is computed by the pure functions of
 * `desired/`, `lifecycle.ts`, `scale.ts` and `status.ts`; what differs is written, each object with its uid and version
 * as a precondition, and the status comes last. Nothing is written where nothing differs.
 */

import type { TrainingRunStatus } from "../crds/trainingrun.ts";
import { reconcileActorCertificates } from "./actor-certificates.ts";
import { labelsOf, REFUSED_SECONDS, reconcileActors, reportDisruptions, reportTerminations } from "./actor-jobs.ts";
import { SILENT_ACTOR_SECONDS, silentSince } from "./actor-state.ts";
import { eventBlocker, isSilent, NO_POD_SECONDS } from "./blockers.ts";
import { currentLearnerHash, derivedOf, reconcileChildren } from "./children.ts";
import { announcements, type Finding, findCondition } from "./conditions.ts";
import { type Context, type Pass, tell } from "./context.ts";
import { FINALIZER, reconcileDeletion, reconcileFinalizer, volumeEvent } from "./deletion.ts";
import { learnerHost, type Run } from "./desired/names.ts";
import { withNewerFields } from "./desired/newer-fields.ts";
import { withRunDefaults } from "./desired/run-defaults.ts";
import { evaluationAnnouncements } from "./evaluation-status.ts";
import { CONFIRM_SECONDS } from "./expectations.ts";
import { followFlavors } from "./flavors.ts";
import { forceDetach } from "./force-detach.ts";
import { EVENT, TRAINING_RUN } from "./kube/resources.ts";
import type { KubeObject, ReconcileResult } from "./kube/types.ts";
import { learnerState, type Warning } from "./learner-state.ts";
import { finalPhase, hasEnded, type LifecyclePlan, planLifecycle } from "./lifecycle.ts";
import type { RunMemory } from "./memory.ts";
import { isUntold, notify } from "./notification.ts";
import { createdMs, isActive, learnerPhase, type Observed, observe } from "./observe.ts";
import { imagesStatus, isKeptActor, pinnedSettings } from "./pin.ts";
import type { Admission } from "./queue.ts";
import { writeBlocker } from "./refusals.ts";
import { isDraining, planActors, type ScalePlan } from "./scale.ts";
import { desiredStatus } from "./status.ts";
import { changeOf, statusWaitSeconds } from "./status-writes.ts";
import { suspendLearner, suspensionOptions } from "./suspension.ts";
import { admission, reconcileWorkload } from "./workload.ts";
import { Writes } from "./writes.ts";

/** What `spec.managedBy` says where this controller is meant; absent means the same. */
export const MANAGED_BY_US = "longrun.dev/controller";
/** How long a controller that has just started listens for a learner before it writes that there is none. */
const HEAR_SECONDS = 15;
/** How often the events of an object that does not come on are asked for. */
const WARNING_SECONDS = 15;
/** A learner that stopped, though nobody told it to, is replaced by its Deployment before this, or not at all. */
const STOPPED_SECONDS = 20;
/** A learner that is not heard for less than this is not missed: a controller that starts anew connects first. */
const RECONNECT_SECONDS = 10;

export async function reconcile(key: string, context: Context): Promise<ReconcileResult> {
  const run = context.cache.trainingRun(key);
  if (!run) return forget(key, context);
  if ((run.spec.managedBy ?? MANAGED_BY_US) !== MANAGED_BY_US) return {};
  await context.expectations.confirm(key);
  if (context.expectations.unseen(key).length > 0) return { requeueAfterSeconds: CONFIRM_SECONDS };

  const pass = look(key, run, context);
  if (run.metadata.deletionTimestamp) return reconcileDeletion(pass);
  if (isOverdue(pass) && !isUntold(pass)) return expire(pass);
  const again: (number | undefined)[] = [notify(pass)];

  const queue = admission(pass);
  const unplaced = await attempt(pass, () => place(pass, queue));
  again.push(suspend(pass, queue));
  const lifecycle = planLifecycle(pass.observed, pass.memory.suspension, currentLearnerHash(pass), queue);
  if (await reconcileFinalizer(pass, lifecycle)) return {};

  const held = unplaced ?? (await attempt(pass, () => reconcileWorkload(pass, lifecycle)));
  const children = await reconcileChildren(pass, lifecycle, held);
  const kept = await attempt(pass, async () => void again.push(await forceDetach(pass)));
  const refused = { blocked: children.blocked ?? kept, other: children.other };
  reconcileLink(pass, lifecycle);

  const { actorHash, inputs } = derivedOf(pass);
  const scale = planActors(pass.observed, {
    stage: lifecycle.stage,
    stabiliser: pass.memory.stabiliser,
    hash: actorHash,
    keeps: (actor) => isKeptActor(pass.observed, actor, inputs),
    nowMs: pass.nowMs,
  });
  // Of the actors that are there; first, since they need theirs also where no further actor can be made.
  const uncertified = await attempt(pass, () => reconcileActorCertificates(pass));
  const actorsRefused = (await reconcileActors(pass, scale)) ?? uncertified;
  reportTerminations(pass);
  reportDisruptions(pass);
  again.push(nextLossSeconds(pass));

  const warning = await findWarning(pass);
  const learner = learnerState({
    observed: pass.observed,
    lifecycle,
    refused: refused.blocked,
    warning: warning.learner,
    podlessSinceMs: podlessSinceMs(pass),
    nowMs: pass.nowMs,
  });
  again.push(learner.againSeconds, scale.againSeconds, warning.againSeconds);
  if (refused.blocked ?? refused.other ?? actorsRefused) again.push(REFUSED_SECONDS);
  const status = desiredStatus({
    ...{ observed: pass.observed, lifecycle, learner, scale, nowMs: pass.nowMs },
    written: pass.memory.suspension?.checkpoint,
    notification: pass.memory.notification,
    images: imagesStatus(pass.observed, lifecycle, pass.settings),
    refused,
    actorsRefused: actorsRefused ?? (warning.actors && eventBlocker(warning.actors, "actors")),
  });
  const unheard = isUnheard(pass);
  again.push(unheard ? HEAR_SECONDS : await reconcileStatus(pass, status));
  measure(pass, unheard ? (run.status ?? {}) : status, lifecycle, scale);
  again.push(
    isOverdue(pass) ? undefined : (expiryMs(pass) - pass.nowMs) / 1000,
    (Math.min(...certificatesOf(pass).map(({ renewAtMs }) => renewAtMs)) - pass.nowMs) / 1000,
  );
  const seconds = Math.min(...again.filter((it) => it !== undefined));
  return Number.isFinite(seconds) ? { requeueAfterSeconds: Math.max(0.1, seconds) } : {};
}

function look(key: string, run: Run, context: Context): Pass {
  const nowMs = context.now();
  const memory = context.memories.of(key, run, nowMs);
  const observed = observe(
    withRunDefaults(withNewerFields(run), context.settings.runDefaults),
    context.cache,
    context.links.observed(key),
    { kueue: context.settings.kueue ?? false, nowMs },
  );
  noteSilence(observed, memory, nowMs);
  memory.volume = observed.volume?.metadata.name ?? memory.volume;
  const writes = new Writes(run, { ...context, applied: memory.applied });
  return { key, observed, memory, writes, context, settings: pinnedSettings(observed, context.settings), nowMs };
}

/** An actor that runs and that the learner has not heard for long is lost, whatever Kubernetes says of its pod. */
function noteSilence({ actors, link }: Observed, memory: RunMemory, nowMs: number): void {
  memory.silentSinceMs = silentSince(actors, link?.connected ?? false, memory.silentSinceMs, nowMs);
  for (const actor of actors) {
    const sinceMs = memory.silentSinceMs.get(actor.name) ?? nowMs;
    if (nowMs - sinceMs >= SILENT_ACTOR_SECONDS * 1000) actor.state = "lost";
  }
}

/** @returns the seconds until an actor or a pod counts as lost that nothing more is heard of */
function nextLossSeconds({ observed, memory, nowMs }: Pass): number | undefined {
  const silentMs = [...memory.silentSinceMs.values()].map((sinceMs) => sinceMs + SILENT_ACTOR_SECONDS * 1000);
  const next = Math.min(observed.nextLossMs ?? Number.POSITIVE_INFINITY, ...silentMs.filter((atMs) => atMs > nowMs));
  return Number.isFinite(next) ? (next - nowMs) / 1000 : undefined;
}

/** The run is gone, and its children with it. */
function forget(key: string, context: Context): ReconcileResult {
  context.links.drop(key);
  context.expectations.forget(key);
  const memory = context.memories.forget(key);
  if (!memory) return {};
  const { run } = memory;
  const event = { type: "Normal", action: "Delete", ...volumeEvent(run, memory.volume) } as const;
  if (!run.metadata.finalizers?.includes(FINALIZER)) context.events.record(run, event); // or it has been told
  const { namespace, name } = run.metadata;
  context.metrics.forget({ namespace, run: name });
  return {};
}

/** A run that Kueue has admitted goes to the nodes that it was admitted to. */
async function place(pass: Pass, { state }: Admission): Promise<void> {
  if (state === "admitted" && !hasEnded(pass.observed)) await followFlavors(pass);
  else pass.memory.flavors = undefined;
}

/** @returns the seconds until the wait for the checkpoint is over */
function suspend(pass: Pass, queue: Admission): number | undefined {
  const { observed, memory, nowMs } = pass;
  const { run, deployment } = observed;
  const running = (deployment?.spec?.replicas ?? 0) > 0;
  // Of a suspension that an earlier controller began, only the learner knows.
  const stopped = running && !run.spec.suspend && learnerPhase(observed.link) === "STOPPED";
  memory.stoppedSinceMs = stopped ? (memory.stoppedSinceMs ?? nowMs) : undefined;
  const forLong = memory.stoppedSinceMs !== undefined && nowMs - memory.stoppedSinceMs >= STOPPED_SECONDS * 1000;
  const evicted = running && queue.state === "waiting" ? queue.finding : undefined;
  if (!run.spec.suspend && !evicted && !(running && memory.suspension) && !forLong) {
    memory.suspension = undefined;
    return stopped ? STOPPED_SECONDS : undefined;
  }
  const waitSeconds = suspendLearner(pass, suspensionOptions(pass, evicted));
  return waitSeconds > 0 ? waitSeconds : undefined;
}

/** Runs a step. @returns what a person must know of why it was refused. @throws what trying again may mend */
async function attempt({ observed }: Pass, step: () => Promise<void>): Promise<Finding | undefined> {
  try {
    await step();
    return undefined;
  } catch (error) {
    const finding = writeBlocker(error, observed.run);
    if (!finding) throw error;
    return finding;
  }
}

/**
 * This process has not heard the learner yet, and the one before it had: what the status says stands, or every start of
 * a controller would take each run from ready to not ready and back.
 */
function isUnheard({ observed: { run, link, learnerPod }, nowMs }: Pass): boolean {
  const wasThere = findCondition(run.status?.conditions, "LearnerAvailable")?.status === "True";
  if (!wasThere || !isLearnerUp(learnerPod) || link?.status) return false;
  return nowMs - (link?.sinceMs ?? nowMs) < HEAR_SECONDS * 1000;
}

function isLearnerUp(pod: Observed["learnerPod"]): boolean {
  return pod?.status?.containerStatuses?.some(({ name, state }) => name === "learner" && state?.running) ?? false;
}

/** A learner whose container runs is dialled; one that is meant to be gone is not listened to any more. */
function reconcileLink({ key, observed, context }: Pass, { learnerReplicas }: LifecyclePlan): void {
  const { run, learnerPod } = observed;
  if (learnerReplicas === 0) context.links.drop(key);
  if (learnerReplicas === 0 || !learnerPod || !isLearnerUp(learnerPod)) return;
  const instance = learnerPod.metadata.uid!;
  context.links.ensure(key, { uid: run.metadata.uid, serverName: learnerHost(run), instance });
}

/** A Deployment says when it was made, not since when it is to have a pod: after a resume that is later. */
function podlessSinceMs({ observed: { deployment, learnerPod }, memory, nowMs }: Pass): number | undefined {
  const podless = (deployment?.spec?.replicas ?? 0) > 0 && !learnerPod;
  memory.podlessSinceMs = podless ? (memory.podlessSinceMs ?? nowMs) : undefined;
  return memory.podlessSinceMs;
}

function expiryMs({ observed }: Pass): number {
  const { run } = observed;
  const { completionTime } = run.status ?? {};
  const { ttlSecondsAfterFinished: ttl } = run.spec;
  return completionTime === undefined || ttl === undefined || !hasEnded(observed)
    ? Number.POSITIVE_INFINITY
    : Date.parse(completionTime) + ttl * 1000;
}

function isOverdue(pass: Pass): boolean {
  return expiryMs(pass) <= pass.nowMs;
}

async function expire(pass: Pass): Promise<ReconcileResult> {
  const { run } = pass.observed;
  tell(
    pass,
    "Normal",
    "Expired",
    `deleted ${run.spec.ttlSecondsAfterFinished} s after its end (spec.ttlSecondsAfterFinished)`,
    "Delete",
  );
  await pass.writes.remove(TRAINING_RUN, run);
  return {};
}

/** The newest warnings about a learner, the copy before it, or an actor that does not come on and does not say why itself. */
async function findWarning(pass: Pass): Promise<{ learner?: Warning; actors?: Warning; againSeconds?: number }> {
  const { observed, memory, context, nowMs } = pass;
  const { learnerPod, initPod, actors } = observed;
  const stuck = actors.find(
    ({ state, pod, job }) =>
      state === "starting" && (pod ? isSilent(pod, nowMs) : nowMs - createdMs(job) > NO_POD_SECONDS * 1000),
  );
  const ownStuck = [learnerPod, initPod].find((pod) => pod && isSilent(pod, nowMs));
  const subject = ownStuck ?? stuck?.pod ?? stuck?.job;
  const waiting = actors.some(({ state }) => state === "starting");
  if (!subject) return waiting ? { againSeconds: WARNING_SECONDS } : {};
  const uid = subject.metadata.uid!;
  if (memory.warning?.uid !== uid || nowMs - memory.warning.atMs >= WARNING_SECONDS * 1000) {
    const { items } = await context.client.list<KubeObject & Warning & { type?: string }>(EVENT, {
      namespace: observed.run.metadata.namespace,
      fieldSelector: `regarding.uid=${uid},type=Warning`,
      limit: 50,
    });
    // What the scheduler says stands in the pod's conditions, and its warnings outlive their cause.
    const told = items.filter(({ reason }) => reason !== "FailedScheduling");
    const newest = told.toSorted((a, b) => createdMs(b) - createdMs(a));
    // A kubelet that waits for a volume says that it waits; who attaches the volume says why.
    const warning = newest.find(({ note = "" }) => !/timed out waiting/.test(note)) ?? newest[0];
    memory.warning = {
      uid,
      atMs: nowMs,
      warning: warning && { reason: warning.reason ?? "", note: warning.note ?? "" },
    };
  }
  const { warning } = memory.warning;
  return { ...(warning && { [ownStuck ? "learner" : "actors"]: warning }), againSeconds: WARNING_SECONDS };
}

/** @returns the seconds until a status that is held back may be written */
async function reconcileStatus(pass: Pass, desired: TrainingRunStatus): Promise<number | undefined> {
  const { observed, memory, writes, context, nowMs } = pass;
  const { run } = observed;
  const before = run.status ?? {};
  const change = changeOf(before, desired);
  if (change === "none") return undefined;
  const reconnectMs = reconnectingUntilMs(pass) - nowMs;
  if (reconnectMs > 0) return reconnectMs / 1000;
  const waitSeconds = statusWaitSeconds(change, {
    sinceSeconds: (nowMs - memory.statusWrittenMs) / 1000,
    ownSeconds: memory.statusTokens.secondsUntilNext(),
    hasSpare: context.client.hasSpare,
  });
  if (waitSeconds > 0) return waitSeconds;
  memory.statusTokens.reserveSeconds();
  await writes.applyStatus(TRAINING_RUN, run, desired);
  memory.statusWrittenMs = nowMs;
  const told = announcements(desired.conditions ?? [], before.conditions ?? []);
  for (const { type, reason, message } of [...told, ...evaluationAnnouncements(desired, before)])
    tell(pass, type, reason, message);
  return undefined;
}

/** While it may be heard again at any moment, what was said of it last stands. */
function reconnectingUntilMs({ observed, memory, nowMs }: Pass): number {
  const { run, link, learnerPod } = observed;
  const available = findCondition(run.status?.conditions, "LearnerAvailable")?.status === "True";
  const goesOn = !run.spec.suspend && finalPhase(observed) === undefined;
  if (!available || !goesOn || !isLearnerUp(learnerPod) || link?.connected) {
    memory.unheardSinceMs = undefined;
    return 0;
  }
  memory.unheardSinceMs ??= nowMs;
  return memory.unheardSinceMs + RECONNECT_SECONDS * 1000;
}

/** What is known of the certificates in use: the learner's with the authority's, and the actors'. */
function certificatesOf({ memory }: Pass): { renewAtMs: number; expireAtMs: number }[] {
  return [...(memory.certificates ? [memory.certificates] : []), ...memory.actorCertificates.values()];
}

/** Stages in which there should be a learner that answers. */
const LEARNER_DUE = ["Initialising", "Running", "Refused"];

function measure(
  pass: Pass,
  status: TrainingRunStatus,
  { stage }: LifecyclePlan,
  { demand, desired }: ScalePlan,
): void {
  const { observed, memory } = pass;
  const active = observed.actors.filter(isActive);
  const counts = { running: 0, starting: 0, draining: 0 };
  for (const actor of active) counts[isDraining(actor) ? "draining" : (actor.state as "running" | "starting")]++;
  const said = observed.link?.status?.executions;
  pass.context.metrics.observe(labelsOf(pass), {
    ...{ run: observed.run, status, demand },
    executions: said && {
      ...{ completed: said.completed, lost: said.lost, retried: said.retried, disrupted: said.disrupted },
    },
    actors: { desired, ...counts, idle: status.actors?.idle ?? 0 },
    learnerDue: LEARNER_DUE.includes(stage),
    // Those of a run that is over are not renewed, and not used.
    certificatesExpireAtMs:
      stage === "Ended" || !memory.certificates
        ? undefined
        : Math.min(...certificatesOf(pass).map(({ expireAtMs }) => expireAtMs)),
  });
}
