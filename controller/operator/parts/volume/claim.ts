/** Names and writes the run's volume claim. */

import { type Look, recordEvent } from "../../context.ts";
import { labelsOf, RETAINED_SINCE, RUN, RUN_UID, type Run } from "../../desired/names.ts";
import { PERSISTENT_VOLUME_CLAIM, type PersistentVolumeClaim, TRAINING_RUN } from "../../kube/resources.ts";
import { overLimit } from "../../status/blockers.ts";
import { findCondition } from "../../status/conditions.ts";
import { applyChild } from "../../writes/apply-child.ts";
import { claimNames, mayTake } from "../../writes/ownership.ts";
import { BlockedError, writeBlocker } from "../../writes/refusals.ts";
import { askedVolume } from "../learner/learner-failures.ts";
import { defaultStorageClass, desiredVolume, sizeOf, withSize } from "./desired.ts";

/**
 * Returns `NAME-data`, or another name if an earlier run with this name has left its volume, which is never taken over.
 */
export async function chooseClaim(look: Look): Promise<string> {
  const { run, volume } = look.observed;
  if (volume) return volume.metadata.name;
  const [name, own] = claimNames(run);
  const found = await look.context.client.get<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIM, {
    namespace: run.metadata.namespace,
    name,
  });
  if (!found || mayTake(run, found)) return name;
  const whose = found.metadata.labels?.[RUN] === run.metadata.name ? "an earlier run of this name" : "somebody else";
  const note = `volume ${name} belongs to ${whose} and is not used; this run uses ${own}`;
  recordEvent(look, "VolumeNameTaken", note);
  return own;
}

/**
 * Takes over the volume of `initFrom.volume`, once.
 *
 * @returns whether the claim was written, so that what was observed is outdated
 * @throws BlockedError if there is none, or if another run or another owner has it
 */
export async function adoptVolume(look: Look): Promise<boolean> {
  const { observed, context, writes } = look;
  const { run, volume } = observed;
  const name = run.spec.initFrom?.volume;
  if (name === undefined || volume) return false;
  const { namespace } = run.metadata;
  const found = await context.client.get<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIM, { namespace, name });
  const blocked = (reason: "InitFromMissing" | "InitFromFailed", why: string): never => {
    throw new BlockedError(reason, `spec.initFrom.volume: ${why}`);
  };
  if (!found || found.metadata.deletionTimestamp)
    return blocked(
      "InitFromMissing",
      `there is no claim ${name} in namespace ${namespace}; kubectl longrun volumes lists them`,
    );
  const { labels, ownerReferences = [] } = found.metadata;
  const { items } = await context.client.list<Run>(TRAINING_RUN, { namespace });
  const owner = items.find(({ metadata }) => metadata.uid === labels?.[RUN_UID]);
  if (owner && owner.metadata.uid !== run.metadata.uid)
    return blocked(
      "InitFromFailed",
      `claim ${name} is the volume of TrainingRun ${owner.metadata.name}: delete that run first`,
    );
  if (ownerReferences.length > 0 && !mayTake(run, found))
    return blocked(
      "InitFromFailed",
      `claim ${name} belongs to ${ownerReferences[0]!.kind} ${ownerReferences[0]!.name}: copy it`,
    );
  const annotations = { [RETAINED_SINCE]: null };
  await writes.patch(PERSISTENT_VOLUME_CLAIM, found, { metadata: { labels: labelsOf(run, "learner"), annotations } });
  recordEvent(
    look,
    "VolumeAdopted",
    `volume ${name} with its samples and checkpoints is this run's now (spec.initFrom.volume)`,
  );
  return true;
}

/** Creates or changes the claim. If the API server refuses to grow it, its other fields are still applied. */
export async function reconcileVolume(look: Look, claimName: string): Promise<void> {
  const { observed, runtime } = look;
  const { run, volume, learnerPod } = observed;
  const succeeded = findCondition(run.status?.conditions, "Succeeded")?.status === "True";
  const defaultClass = defaultStorageClass(runtime?.spec, volume);
  const wantedSize = learnerPod && askedVolume(learnerPod);
  const desired = desiredVolume(run, claimName, { succeeded, defaultClass, wantedSize, present: volume });
  try {
    await applyChild(look, PERSISTENT_VOLUME_CLAIM, desired);
  } catch (error) {
    const refusal = writeBlocker(error, run);
    if (!refusal || !volume || sizeOf(desired) === sizeOf(volume)) throw error;
    await applyChild(look, PERSISTENT_VOLUME_CLAIM, withSize(desired, sizeOf(volume)!));
    const isLimited = overLimit((error as Error).message) !== undefined;
    throw isLimited ? error : notResized(run, sizeOf(desired)!, volume, error as Error);
  }
}

function notResized(run: Run, size: string, claim: PersistentVolumeClaim, { message }: Error): BlockedError {
  const asked = run.spec.learner.storage.size === undefined ? "the learner asks for" : "spec.learner.storage.size is";
  const by = `StorageClass ${claim.spec?.storageClassName ?? "(none)"}`;
  return new BlockedError(
    "VolumeNotResized",
    `${asked} ${size}, and claim ${claim.metadata.name} of ${by} stays at ${sizeOf(claim)} (${message}): set allowVolumeExpansion: true in ${by} if its driver can grow volumes; the run continues with the present size`,
  );
}
