/** Every kind that the controller reads or writes, with its path on the API server. */
import type {
  V1ConfigMap,
  V1Deployment,
  V1Job,
  V1Lease,
  V1Namespace,
  V1NetworkPolicy,
  V1PersistentVolumeClaim,
  V1Pod,
  V1PodDisruptionBudget,
  V1ReplicaSet,
  V1Secret,
  V1Service,
  V1ServiceAccount,
} from "@kubernetes/client-node";
import type { ObjectKey, RawObject, Resource } from "./types.ts";

export type ConfigMap = RawObject<V1ConfigMap>;
export type Deployment = RawObject<V1Deployment>;
export type Job = RawObject<V1Job>;
export type Lease = RawObject<V1Lease>;
export type Namespace = RawObject<V1Namespace>;
export type NetworkPolicy = RawObject<V1NetworkPolicy>;
export type PersistentVolumeClaim = RawObject<V1PersistentVolumeClaim>;
export type Pod = RawObject<V1Pod>;
export type PodDisruptionBudget = RawObject<V1PodDisruptionBudget>;
export type ReplicaSet = RawObject<V1ReplicaSet>;
export type Secret = RawObject<V1Secret>;
export type Service = RawObject<V1Service>;
export type ServiceAccount = RawObject<V1ServiceAccount>;

function clusterWide(group: string, version: string, plural: string, kind: string): Resource {
  return Object.freeze({ group, version, plural, kind, namespaced: false });
}

function namespaced(group: string, version: string, plural: string, kind: string): Resource {
  return Object.freeze({ group, version, plural, kind, namespaced: true });
}

export const TRAINING_RUN = namespaced("longrun.dev", "v1alpha1", "trainingruns", "TrainingRun");
export const TRAINING_RUNTIME = clusterWide("longrun.dev", "v1alpha1", "trainingruntimes", "TrainingRuntime");
export const CONFIG_MAP = namespaced("", "v1", "configmaps", "ConfigMap");
export const PERSISTENT_VOLUME_CLAIM = namespaced("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim");
export const POD = namespaced("", "v1", "pods", "Pod");
export const SECRET = namespaced("", "v1", "secrets", "Secret");
export const SERVICE = namespaced("", "v1", "services", "Service");
export const SERVICE_ACCOUNT = namespaced("", "v1", "serviceaccounts", "ServiceAccount");
export const DEPLOYMENT = namespaced("apps", "v1", "deployments", "Deployment");
export const REPLICA_SET = namespaced("apps", "v1", "replicasets", "ReplicaSet");
export const JOB = namespaced("batch", "v1", "jobs", "Job");
export const NETWORK_POLICY = namespaced("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy");
export const POD_DISRUPTION_BUDGET = namespaced("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget");
/** A resource of Kueue, if that is installed. */
export const WORKLOAD = namespaced("kueue.x-k8s.io", "v1beta2", "workloads", "Workload");
export const LEASE = namespaced("coordination.k8s.io", "v1", "leases", "Lease");
export const EVENT = namespaced("events.k8s.io", "v1", "events", "Event");
export const NAMESPACE = clusterWide("", "v1", "namespaces", "Namespace");
export const RESOURCE_FLAVOR = clusterWide("kueue.x-k8s.io", "v1beta2", "resourceflavors", "ResourceFlavor");
export const PRIORITY_CLASS = clusterWide("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass");
export const WORKLOAD_PRIORITY_CLASS = clusterWide(
  "kueue.x-k8s.io",
  "v1beta2",
  "workloadpriorityclasses",
  "WorkloadPriorityClass",
);

export function apiVersionOf({ group, version }: Resource): string {
  return group ? `${group}/${version}` : version;
}

/**
 * @returns the URL path of a collection (without a name) or of one object; for a namespaced resource without a namespace, of all namespaces
 */
export function pathOf(resource: Resource, key: Partial<ObjectKey> = {}, subresource?: string): string {
  const parts = [resource.group ? `/apis/${resource.group}` : "/api", resource.version];
  if (resource.namespaced && key.namespace) parts.push("namespaces", encodeURIComponent(key.namespace));
  parts.push(resource.plural);
  if (key.name) parts.push(encodeURIComponent(key.name));
  if (subresource) parts.push(subresource);
  return parts.join("/");
}
