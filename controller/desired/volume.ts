/** The run's volume: store, checkpoints and reports. */
import type { PersistentVolumeClaim } from "../kube/resources.ts";
import { childMetadata, type Run } from "./names.ts";
import type { RunDefaults } from "./run-defaults.ts";

/**
 * The claim. Whether it goes with the TrainingRun is `storage.retain`: Kubernetes collects what has the run as its owner.
 *
 * @param name as `claimName` chose it
 * @param succeeded whether the run has: what OnSuccess waits for
 * @param defaultClass storage class where the run names none; absent: the cluster's
 */
export function desiredVolume(
  run: Run,
  name: string,
  succeeded: boolean,
  defaultClass?: string,
): PersistentVolumeClaim {
  const { size, className = defaultClass, accessMode } = run.spec.learner.storage;
  const { ownerReferences, ...metadata } = childMetadata(run, "data", "learner");
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { ...metadata, name, ownerReferences: staysBehind(run, succeeded) ? [] : ownerReferences! },
    spec: {
      accessModes: [accessMode],
      resources: { requests: { storage: size } },
      ...(className !== undefined && { storageClassName: className }),
    },
  };
}

/**
 * Storage class where the run names none: the administrator's, for a claim that is new, or that has neither class nor
 * volume and would wait for ever. That of any other cannot change, and stays whatever the administrator says later.
 */
export function defaultStorageClass(
  defaults: RunDefaults | undefined,
  claim: PersistentVolumeClaim | undefined,
): string | undefined {
  const { storageClassName, volumeName } = claim?.spec ?? {};
  return storageClassName ?? (volumeName ? undefined : defaults?.learner?.storage?.className);
}

/** Whether the volume outlives the TrainingRun. */
export function staysBehind({ spec }: Run, succeeded: boolean): boolean {
  const { retain } = spec.learner.storage;
  return retain === "Always" || (retain === "OnSuccess" && succeeded);
}
