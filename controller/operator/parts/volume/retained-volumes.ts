/**
 * Deletes volumes with `learner.storage.retainSeconds` that have outlived their runs for that time. No reconcile does it, because their
 * TrainingRuns are gone.
 */
import type { Context } from "../../context.ts";
import { RETAIN_SECONDS, RETAINED_SINCE, RUN, RUN_UID, type Run } from "../../desired/names.ts";
import { ApiError, isConflict } from "../../kube/errors.ts";
import { PERSISTENT_VOLUME_CLAIM, type PersistentVolumeClaim, TRAINING_RUN } from "../../kube/resources.ts";

/** Time between two checks of the volumes. */
export const SWEEP_SECONDS = 60;

interface Retained {
  claim: PersistentVolumeClaim;
  retainSeconds: number;
  /** Unix milliseconds at which the controller saw that its run is gone; undefined: not seen yet. */
  sinceMs: number | undefined;
}

/** Returns a claim with a time for its deletion that the garbage collector does not delete; undefined for other claims. */
export function retained(claim: PersistentVolumeClaim): Retained | undefined {
  const { annotations = {}, ownerReferences = [], deletionTimestamp } = claim.metadata;
  const seconds = annotations[RETAIN_SECONDS];
  if (seconds === undefined || !/^\d+$/.test(seconds) || ownerReferences.length > 0 || deletionTimestamp)
    return undefined;
  const sinceMs = Date.parse(annotations[RETAINED_SINCE] ?? "");
  return { claim, retainSeconds: Number(seconds), sinceMs: Number.isNaN(sinceMs) ? undefined : sinceMs };
}

/** Returns the run that copies its first checkpoint from the volume, or takes it over, and has not started yet. */
export function waitingFor({ metadata: { name, labels } }: PersistentVolumeClaim, runs: Run[]): Run | undefined {
  const source = labels?.[RUN] ?? "";
  const needs = ({ run, volume }: NonNullable<Run["spec"]["initFrom"]>) => run === source || volume === name;
  return runs.find(({ spec, status }) => spec.initFrom && needs(spec.initFrom) && status?.startTime === undefined);
}

/** Notes when each volume's run was gone, and deletes volumes whose time is over. */
export async function sweepVolumes(
  claims: PersistentVolumeClaim[],
  { cache, client, log, now }: Pick<Context, "cache" | "client" | "log" | "now">,
): Promise<void> {
  for (const claim of claims) {
    const found = retained(claim);
    const { name, namespace, uid, resourceVersion, labels } = claim.metadata;
    const run = { namespace: namespace!, name: labels?.[RUN] ?? "" };
    const isOf = (other: Run | undefined) => other?.metadata.uid === labels?.[RUN_UID];
    if (!found || !labels?.[RUN_UID] || isOf(cache.trainingRun(`${run.namespace}/${run.name}`))) continue;
    const isOver = found.sinceMs !== undefined && now() - found.sinceMs >= found.retainSeconds * 1000;
    if (found.sinceMs !== undefined && !isOver) continue;
    const place = { namespace: namespace!, name };
    try {
      // The cache may be late, and a deletion is final: ask the API server.
      const { items } = await client.list<Run>(TRAINING_RUN, { namespace: run.namespace });
      if (items.some(isOf) || (isOver && waitingFor(claim, items))) continue;
      if (isOver) {
        await client.delete(PERSISTENT_VOLUME_CLAIM, place, { uid: uid!, resourceVersion: resourceVersion! });
        const fields = { volume: `${namespace}/${name}`, run: run.name, retainSeconds: found.retainSeconds };
        log.info(fields, "deleted a volume whose run is gone (learner.storage.retainSeconds)");
      } else {
        const annotations = { [RETAINED_SINCE]: new Date(now()).toISOString() };
        await client.mergePatch(PERSISTENT_VOLUME_CLAIM, place, { metadata: { resourceVersion, annotations } });
      }
    } catch (error) {
      // The claim was changed or deleted meanwhile: the next check sees its present state.
      if (isConflict(error) || (error instanceof ApiError && error.status === 404)) continue;
      log.warn(
        { volume: `${namespace}/${name}`, error: (error as Error).message },
        "a retained volume was not handled",
      );
    }
  }
}
