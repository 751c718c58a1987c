/**
 * Decides which objects belong to a run. Anybody who may create objects can write a label, so labels prove nothing. An object belongs
 * to the run if it is in the run's namespace and the run owns it; a pod, if the run owns its ReplicaSet's Deployment or its
 * Job. A volume that outlives its run has no owner: its name decides, and of two such volumes the older one counts.
 */
import { childName, RUN_UID, type Run } from "../desired/names.ts";
import {
  DEPLOYMENT,
  type Deployment,
  PERSISTENT_VOLUME_CLAIM,
  type PersistentVolumeClaim,
  POD,
  type Pod,
  REPLICA_SET,
} from "../kube/resources.ts";
import { controllerUid } from "../kube/runtime/owner-index.ts";
import type { KubeObject, Resource } from "../kube/types.ts";

/** Children in memory, fed by watches. */
export interface Cache {
  trainingRun(key: string): Run | undefined;
  /** `key`: `namespace/name`. */
  get<T extends KubeObject>(resource: Resource, key: string): T | undefined;
  /** Objects of the namespace whose controlling owner has this uid. */
  ownedBy<T extends KubeObject>(resource: Resource, namespace: string, ownerUid: string): T[];
  /** Jobs of the run's namespace that have its uid in their label, whoever created them. */
  labelledJobs<T extends KubeObject>(run: Run): T[];
}

/** Whether the run is the object's controlling owner. An earlier run of the same name has another uid. */
export function isChildOf(run: Run, object: KubeObject): boolean {
  return object.metadata.namespace === run.metadata.namespace && controllerUid(object) === run.metadata.uid;
}

/** Returns the run's child `NAME-suffix`. */
export function childOf<T extends KubeObject>(
  run: Run,
  cache: Cache,
  resource: Resource,
  suffix: string,
): T | undefined {
  const found = cache.get<T>(resource, `${run.metadata.namespace}/${childName(run, suffix)}`);
  return found && isChildOf(run, found) ? found : undefined;
}

/** Whether the object has this run's label and no controlling owner: its owner reference was removed, or it never had one. */
export function isOrphanOf(run: Run, { metadata }: KubeObject): boolean {
  const { namespace, labels } = metadata;
  return (
    namespace === run.metadata.namespace &&
    labels?.[RUN_UID] === run.metadata.uid &&
    controllerUid({ metadata }) === undefined
  );
}

/** Returns whether the run may overwrite the object that has a child's name. */
export function mayTake(run: Run, object: KubeObject): boolean {
  return isChildOf(run, object) || isOrphanOf(run, object);
}

/** Returns the pods of the learner's Deployment, by its ReplicaSets. */
export function learnerPodsOf(run: Run, cache: Cache): Pod[] {
  return podsOf(deploymentOf(run, cache), run, cache);
}

/** Returns the pods of one of the run's Deployments. */
export function podsOf(deployment: Deployment | undefined, run: Run, cache: Cache): Pod[] {
  const { namespace } = run.metadata;
  return (deployment ? cache.ownedBy(REPLICA_SET, namespace, deployment.metadata.uid!) : []).flatMap((set) =>
    cache.ownedBy<Pod>(POD, namespace, set.metadata.uid!),
  );
}

export function deploymentOf(run: Run, cache: Cache): Deployment | undefined {
  return childOf(run, cache, DEPLOYMENT, "learner");
}

/**
 * Returns both possible names of the run's volume: the second is used if an earlier run with this name has left its volume. A run that
 * takes over a volume has that one's name.
 */
export function claimNames(run: Run): [first: string, own: string] {
  const adopted = run.spec.initFrom?.volume;
  if (adopted !== undefined) return [adopted, adopted];
  const name = childName(run, "data");
  return [name, `${name}-${run.metadata.uid.slice(0, 8)}`];
}

/**
 * Returns the run's volume: the claim that its learner mounts, or else the oldest one. A claim that somebody else creates with the run's label
 * is younger.
 */
export function volumeOf(run: Run, cache: Cache): PersistentVolumeClaim | undefined {
  const found = claimNames(run).flatMap((name) => {
    const claim = cache.get<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIM, `${run.metadata.namespace}/${name}`);
    return claim && mayTake(run, claim) ? [claim] : [];
  });
  const volumes = deploymentOf(run, cache)?.spec?.template.spec?.volumes;
  const mounted = volumes?.find(({ name }) => name === "data")?.persistentVolumeClaim?.claimName;
  const created = ({ metadata }: KubeObject) => metadata.creationTimestamp ?? "";
  return (
    found.find(({ metadata }) => metadata.name === mounted) ??
    found.sort((a, b) => created(a).localeCompare(created(b)))[0]
  );
}
