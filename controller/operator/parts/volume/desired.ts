/** The run's volume: store, checkpoints and reports. */
import { parseQuantity } from "../../../../crds/quantity.ts";
import type { RuntimeSpec } from "../../../../crds/runtime.ts";
import { childMetadata, RETAIN_SECONDS, type Run } from "../../desired/names.ts";
import type { PersistentVolumeClaim } from "../../kube/resources.ts";

interface VolumeInputs {
  /** Whether the run has succeeded, for OnSuccess. */
  succeeded: boolean;
  /** StorageClass if the run names none; absent: the cluster's default. */
  defaultClass?: string | undefined;
  /** Size that the learner has asked for, if the run names none (proto/volume.ts). */
  wantedSize?: string | undefined;
  /** The existing claim; absent: it must be created. */
  present?: PersistentVolumeClaim | undefined;
}

/**
 * Returns the claim. Its owner is the run if `storage.retain` wants Kubernetes to delete the claim with the run.
 *
 * @param name as `chooseClaim` chose it
 */
export function desiredVolume(
  run: Run,
  name: string,
  { succeeded, defaultClass, wantedSize, present }: VolumeInputs,
): PersistentVolumeClaim {
  const { className = defaultClass, accessMode, retainSeconds } = run.spec.learner.storage;
  const annotations = retention(retainSeconds, present);
  const { ownerReferences, ...metadata } = childMetadata(run, "data", "learner", annotations);
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { ...metadata, name, ownerReferences: staysBehind(run, succeeded) ? [] : ownerReferences! },
    spec: {
      accessModes: [accessMode],
      resources: { requests: { storage: desiredSize(run, wantedSize, present) } },
      ...(className !== undefined && { storageClassName: className }),
    },
  };
}

/** Size of a volume if neither the run nor its learner names a size. */
export const DEFAULT_SIZE = "100Gi";

/** Returns the annotation with retainSeconds. It becomes empty if the run no longer has retainSeconds: the volume is not deleted. */
function retention(seconds: number | undefined, present: PersistentVolumeClaim | undefined): Record<string, string> {
  const hasNote = present?.metadata.annotations?.[RETAIN_SECONDS] !== undefined;
  return seconds === undefined && !hasNote ? {} : { [RETAIN_SECONDS]: String(seconds ?? "") };
}

/**
 * Returns the larger of the requested size (spec or learner) and the claim's size: an autoresizer may have enlarged the claim, and no claim
 * can shrink. A claim without a volume keeps its size, because the API server grows bound claims only.
 */
function desiredSize({ spec }: Run, wanted: string | undefined, present: PersistentVolumeClaim | undefined): string {
  const size = spec.learner.storage.size ?? wanted ?? DEFAULT_SIZE;
  const has = present && sizeOf(present);
  if (has === undefined) return size;
  return present?.status?.phase !== "Bound" || parseQuantity(has) >= parseQuantity(size) ? has : size;
}

/** Returns the storage that a claim requests. */
export function sizeOf({ spec }: PersistentVolumeClaim): string | undefined {
  return spec?.resources?.requests?.storage;
}

export function withSize(claim: PersistentVolumeClaim, storage: string): PersistentVolumeClaim {
  return { ...claim, spec: { ...claim.spec, resources: { requests: { storage } } } };
}

/**
 * Returns the StorageClass for a run that names none. The runtime's class applies to a new claim, and to a claim that has
 * neither class nor volume and would wait for ever. Every other claim keeps its class, because Kubernetes does not let it change.
 */
export function defaultStorageClass(
  runtime: RuntimeSpec | undefined,
  claim: PersistentVolumeClaim | undefined,
): string | undefined {
  const { storageClassName, volumeName } = claim?.spec ?? {};
  return storageClassName ?? (volumeName ? undefined : runtime?.learner?.storage?.className);
}

/** Whether the volume outlives the TrainingRun. */
export function staysBehind({ spec }: Run, succeeded: boolean): boolean {
  const { retain } = spec.learner.storage;
  return retain === "Always" || (retain === "OnSuccess" && succeeded);
}
