/**
 * The deletion of a TrainingRun. Kubernetes deletes the children by their owner references. A run has a finalizer only while its learner
 * runs and its volume stays: it waits for the last checkpoint, `learner.checkpoint.waitSeconds` at most.
 */

import { type Look, lookOf, recordEvent, settle } from "../../context.ts";
import { childName, type Run } from "../../desired/names.ts";
import { ApiError } from "../../kube/errors.ts";
import { CONFIG_MAP, TRAINING_RUN } from "../../kube/resources.ts";
import type { Remembers, RunMemory } from "../../memory.ts";
import { findCondition } from "../../status/conditions.ts";
import type { StepResult } from "../../steps.ts";
import { staysBehind } from "../volume/desired.ts";
import { hasEnded, type LifecyclePlan } from "./lifecycle.ts";
import { type LifecycleMemory, suspendLearner } from "./suspension.ts";

export const FINALIZER = "longrun.dev/final-checkpoint";
/** Time between two questions whether the namespace of a run that waits for its last checkpoint is being deleted. */
export const NAMESPACE_SECONDS = 5;

/** The owner of the memory of these questions: a learner that stops reports its status several times a second. */
const ASKED: Remembers<{ askedMs?: number }> = {};

/** @returns whether the run was written, so that the observed state is outdated */
export async function reconcileFinalizer(
  { observed, writes }: Look,
  { learnerReplicas }: LifecyclePlan,
): Promise<boolean> {
  const { run, deployment } = observed;
  const { retain } = run.spec.learner.storage;
  const wanted = retain === "Always" && (learnerReplicas === 1 || (deployment?.spec?.replicas ?? 0) > 0);
  const finalizers = run.metadata.finalizers ?? [];
  if (finalizers.includes(FINALIZER) === wanted) return false;
  const next = wanted ? [...finalizers, FINALIZER] : finalizers.filter((it) => it !== FINALIZER);
  await writes.patch(TRAINING_RUN, run, { metadata: { finalizers: next } });
  return true;
}

/** Asks the learner of a run that is being deleted for a last checkpoint. @returns no `againSeconds` if the run may be deleted */
export function lastCheckpoint(look: Look<LifecycleMemory>): StepResult<LifecycleMemory> {
  const { metadata } = look.observed.run;
  if (!metadata.finalizers?.includes(FINALIZER)) return {};
  const fromMs = Date.parse(metadata.deletionTimestamp!);
  const reason = "the TrainingRun is deleted and its volume stays";
  return suspendLearner(look, { reason, fromMs, drainSeconds: 0 });
}

/**
 * Whether the run's namespace is being deleted. Its volume then goes, too, so no checkpoint is waited for; and the controller's RoleBinding there
 * may go before the run, whose finalizer nobody could remove then. Asks by a dry run, because the controller may not read namespaces.
 */
export async function isNamespaceDeleted(whole: Look<RunMemory>): Promise<boolean> {
  const look = lookOf(whole, ASKED);
  const { observed, context, memory, nowMs } = look;
  const { name, namespace, finalizers } = observed.run.metadata;
  if (!finalizers?.includes(FINALIZER)) return false;
  if (memory.askedMs !== undefined && nowMs - memory.askedMs < NAMESPACE_SECONDS * 1000) return false;
  const isTerminating = await context.client
    .create(CONFIG_MAP, { metadata: { namespace, name: `${name}-deletion` } }, { dryRun: true })
    .then(() => false)
    .catch((error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      return error.status === 403 && /being terminated/.test(error.message);
    });
  // Otherwise the run is let go at once, again after a conflict.
  if (!isTerminating) settle(look, { remember: { askedMs: nowMs } });
  return isTerminating;
}

/** Removes the finalizer of a run that is being deleted. @throws ApiError */
export async function releaseRun(look: Look): Promise<void> {
  const { run } = look.observed;
  const finalizers = run.metadata.finalizers ?? [];
  if (!finalizers.includes(FINALIZER)) return;
  reportVolume(look, run);
  const rest = finalizers.filter((it) => it !== FINALIZER);
  try {
    await look.writes.patch(TRAINING_RUN, run, { metadata: { finalizers: rest } });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    const remedy = `the run stays until the right is there again, or an administrator types: longrun release-runs --namespace ${run.metadata.namespace}`;
    throw new ApiError(`${error.message}; ${remedy}`, error, { cause: error });
  }
}

/** Returns the event that says whether the volume stays. `kubectl get events` shows it after the run itself is gone. */
export function volumeEvent(run: Run, volume: string): { reason: "VolumeStays" | "VolumeGoes"; note: string } {
  const { retain, retainSeconds } = run.spec.learner.storage;
  const succeeded = findCondition(run.status?.conditions, "Succeeded")?.status === "True";
  if (!staysBehind(run, succeeded))
    return { reason: "VolumeGoes", note: `volume ${volume} goes with the run (learner.storage.retain: ${retain})` };
  const until = retainSeconds === undefined ? "" : ` for ${retainSeconds} s (learner.storage.retainSeconds)`;
  const note = `volume ${volume} stays${until} (learner.storage.retain: ${retain}); initFrom.run can start from it, initFrom.volume can go on with it, kubectl delete pvc ${volume} removes it`;
  return { reason: "VolumeStays", note };
}

function reportVolume(look: Look, run: Run): void {
  const volume = look.observed.volume?.metadata.name ?? childName(run, "data");
  const { reason, note } = volumeEvent(run, volume);
  recordEvent(look, reason, note);
}

/** Returns the time at which `spec.ttlSecondsAfterFinished` deletes the run, in Unix milliseconds. */
export function expiryMs({ observed }: Pick<Look, "observed">): number {
  const { run } = observed;
  const { completionTime } = run.status ?? {};
  const { ttlSecondsAfterFinished: ttl } = run.spec;
  return completionTime === undefined || ttl === undefined || !hasEnded(observed)
    ? Number.POSITIVE_INFINITY
    : Date.parse(completionTime) + ttl * 1000;
}

export function isOverdue(look: Pick<Look, "observed" | "nowMs">): boolean {
  return expiryMs(look) <= look.nowMs;
}
