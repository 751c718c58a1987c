/**
 * Finds the reason why a pod does not run, in the pod's status and its events, or why it fails, in the names that it cannot resolve; and the
 * remedy.
 */

import type { Deployment, PersistentVolumeClaim, Pod } from "../kube/resources.ts";
import { createdMs } from "../observe.ts";
import type { Finding } from "./conditions.ts";

/** After this time without a state of its containers, a pod's events are read: they name the missing object. */
const SILENT_POD_SECONDS = 15;
/** A learner that runs but has not answered for this long is reported. */
export const LEARNER_ANSWER_SECONDS = 45;
/** A volume that is not created, attached and mounted this long after its pod's creation is reported. */
const VOLUME_SECONDS = 120;
/** A Deployment or Job that has had no pod for this long is reported. */
export const NO_POD_SECONDS = 20;

/** Fields of the Jobs that fetch the model and copy the results. */
export const MODEL_SOURCE = "spec.model.source";
export const RESULTS_S3 = "spec.results.s3";

const PULL_FAILURES = [
  "ErrImagePull",
  "ImagePullBackOff",
  "InvalidImageName",
  "ErrImageNeverPull",
  "RegistryUnavailable",
  "ImageInspectError",
];
const CONFIG_FAILURES = ["CreateContainerConfigError", "CreateContainerError", "RunContainerError"];

type PodOf = "learner" | "actors" | "generation";

/** Fields that name a container's Secrets and service account, if the pod template does not name them. */
const SETTINGS_OF: Readonly<Record<string, string>> = { fetch: MODEL_SOURCE, push: RESULTS_S3 };

type ContainerStatus = NonNullable<NonNullable<Pod["status"]>["containerStatuses"]>[number];

export function containersOf(pod: Pod): ContainerStatus[] {
  return [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
}

/**
 * @param claim the run's own claim, if the pod mounts it
 * @returns the reason why the pod does not run; undefined if it runs, or if no reason is known yet
 */
export function podBlocker(pod: Pod, owner: PodOf, claim?: PersistentVolumeClaim): Finding | undefined {
  for (const { name, image, state } of containersOf(pod)) {
    const { reason = "", message = "" } = state?.waiting ?? {};
    if (PULL_FAILURES.includes(reason)) {
      const field = `spec.${owner}.${name.startsWith("sandbox") ? "sandboxImage" : "image"}`;
      return {
        reason: "ImagePullFailed",
        message: `image ${image} cannot be pulled (${oneLine(message) || reason}): check ${field}, its registry, and imagePullSecrets in spec.${owner}.podTemplate`,
      };
    }
    if (CONFIG_FAILURES.includes(reason))
      return {
        reason: "ContainerConfigError",
        message: `container ${name} cannot be created (${oneLine(message) || reason}): check the objects that ${SETTINGS_OF[name] ?? `spec.${owner}.podTemplate`} names`,
      };
  }
  const scheduled = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  if (scheduled?.status !== "False") return undefined;
  const text = oneLine(scheduled.message ?? "");
  if (scheduled.reason === "SchedulingGated")
    return {
      reason: "SchedulingGated",
      message: `held back by a scheduling gate (${text}): its owner, such as a queue, removes it`,
    };
  return {
    reason: "Unschedulable",
    message: `no node takes the pod (${text}): ${schedulingRemedy(text, owner, claim)}`,
  };
}

/** The scheduler's messages about an unbound claim, under immediate binding and under binding on the pod's node. */
const NO_VOLUME = /unbound immediate PersistentVolumeClaims|find available persistent volumes to bind/;

function schedulingRemedy(text: string, owner: PodOf, claim: PersistentVolumeClaim | undefined): string {
  if (/persistentvolumeclaim ".*" not found/.test(text)) return "create the claim, or name another in the spec";
  if (NO_VOLUME.test(text)) return volumeRemedy(claim);
  if (/ReadWriteOncePod/.test(text))
    return "another pod has mounted the claim, which only one pod can mount: that pod must end first";
  if (/volume node affinity conflict/.test(text))
    return `one of its volumes is in another zone or on another node than the nodes that fit: free a node there, or give a new run spec.${owner}.podTemplate.spec.nodeSelector, so that its volume is created where the pod can run`;
  if (/Insufficient (nvidia\.com\/|\S+\/gpu)/.test(text))
    return `free or add a node with a GPU, or remove the GPU from spec.${owner}.resources`;
  if (/Insufficient/.test(text))
    return `free or add a node, or request less in spec.${owner}.resources${owner === "actors" ? " and sandboxResources" : ""}`;
  return `check spec.${owner}.podTemplate (nodeSelector, tolerations) and the nodes`;
}

/** The API server writes the cluster's default StorageClass, if there is one, into a claim without a class. */
function volumeRemedy(claim: PersistentVolumeClaim | undefined): string {
  if (claim === undefined || claim.spec?.volumeName)
    return "a claim that it mounts has no volume: kubectl describe pvc shows the reason";
  const { name } = claim.metadata;
  const className = claim.spec?.storageClassName;
  return className === undefined
    ? `claim ${name} has no volume, and the cluster no default StorageClass: make one the default, or name one (chart: runs.storageClassName; in a new run: spec.learner.storage.className)`
    : `claim ${name} has no volume yet: check StorageClass ${className} and its driver, kubectl describe pvc ${name} says more`;
}

/** Returns whether no container of the pod runs or has run. The reason is then in the pod's events. */
export function isSilent(pod: Pod, nowMs: number): boolean {
  return (
    pod.status?.phase === "Pending" &&
    nowMs - createdMs(pod) > SILENT_POD_SECONDS * 1000 &&
    containersOf(pod).every(({ state }) => !state?.running && !state?.terminated)
  );
}

type EventText = { reason?: string; note?: string };

/** The scheduler's messages about a pod while a volume is provisioned for its claim. */
const BEING_MADE = /unbound immediate PersistentVolumeClaims|binding volumes/;
const MISSING = /(secret|configmap|persistentvolumeclaim|serviceaccount) "[^"]*" not found/i;

/** Returns the warning's text if it is about a volume that is attached to another node and fits only one node. */
export function multiAttachNote(warning: EventText | undefined): string | undefined {
  const note = oneLine(warning?.note ?? "");
  return /Multi-Attach error/.test(note) ? note : undefined;
}

/**
 * Returns the finding for the newest warning about a pod that does not start, or about its Job.
 *
 * @param field the field that names the pod's references
 */
export function eventBlocker(event: EventText, field: string): Finding {
  const note = oneLine(event.note ?? "");
  if (multiAttachNote(event))
    return {
      reason: "VolumeAttachedElsewhere",
      message: `a volume is still attached to another node (${note}): the pod that has it there must end first`,
    };
  if (/Mount|Attach/.test(event.reason ?? ""))
    return {
      reason: "VolumeNotMounted",
      message: `a volume cannot be mounted (${note}): ${MISSING.test(note) ? "create the missing object, or name another in the spec" : "check its storage driver on the pod's node; kubectl describe pvc says more"}`,
    };
  const resources = field.endsWith(".podTemplate") ? resourcesOf(field.split(".")[1]!) : undefined;
  const limited = overLimit(note, resources);
  if (limited) return limited;
  const remedy = MISSING.test(note) ? `create it, or name another in ${field}` : `check ${field}`;
  return { reason: "PodNotCreated", message: `${event.reason}: ${note}; ${remedy}` };
}

/**
 * Returns the finding for a pod that waits for its new volume. Warnings are normal until the volume is created, attached and mounted.
 *
 * @param claim the run's own claim
 * @returns undefined after VOLUME_SECONDS, or if the pod waits for something else
 */
export function volumeWait(
  pod: Pod,
  {
    warning,
    claim,
    nowMs,
  }: { warning?: EventText | undefined; claim?: PersistentVolumeClaim | undefined; nowMs: number },
): Finding | undefined {
  if (nowMs - createdMs(pod) > VOLUME_SECONDS * 1000) return undefined;
  const scheduled = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  const text = scheduled?.status === "False" ? (scheduled.message ?? "") : "";
  const name = claim?.metadata.name;
  const className = claim?.spec?.storageClassName;
  const unseen = name !== undefined && text.includes(`persistentvolumeclaim "${name}" not found`);
  if (unseen || (className !== undefined && BEING_MADE.test(text)))
    return {
      reason: "LearnerStarting",
      message: `the pod waits for the volume of claim ${name}${className ? `, which StorageClass ${className} makes` : ""}`,
    };
  const note = oneLine(warning?.note ?? "");
  if (!warning || !/Mount|Attach/.test(warning.reason ?? "") || MISSING.test(note)) return undefined;
  return { reason: "LearnerStarting", message: `the pod waits for its volumes to be attached and mounted (${note})` };
}

/** Returns the reason why the Deployment could not create its pod. */
export function deploymentBlocker({ status }: Deployment): Finding | undefined {
  const failure = status?.conditions?.find(({ type, status }) => type === "ReplicaFailure" && status === "True");
  if (!failure) return undefined;
  const text = oneLine(failure.message ?? "");
  const limited = overLimit(text, resourcesOf("learner"));
  return (
    limited ?? {
      reason: "PodNotCreated",
      message: `the learner's pod is refused (${text}): check spec.learner.podTemplate and the namespace's policies`,
    }
  );
}

/** Returns the fields with the resources of a part's pods. */
const resourcesOf = (of: string) => `spec.${of}.resources${of === "actors" ? " and sandboxResources" : ""}`;

/**
 * The messages of LimitRanges: `maximum storage usage per PersistentVolumeClaim is 50Gi, but request is 100Gi`, `minimum … . No request is
 * specified`, `cpu max limit to request ratio per Container is 2, but provided ratio is 4`.
 */
const LIMIT_RANGE = /(usage|limit to request ratio) per (Container|Pod|PersistentVolumeClaim) is/;

/**
 * Returns the finding for an object that a ResourceQuota or a LimitRange of the namespace does not allow; undefined for other refusals.
 *
 * @param field holds what the object requests. Absent: no field of a run does
 */
export function overLimit(text: string, field?: string): Finding | undefined {
  const less = field === undefined ? "request less" : `request less in ${field}`;
  if (/quota|limited:/.test(text))
    return {
      reason: "QuotaExceeded",
      message: `the namespace's quota does not allow it (${text}): raise the quota, or ${less}`,
    };
  if (!LIMIT_RANGE.test(text)) return undefined;
  const fit = field === undefined ? "" : `stay within its limits in ${field}, or `;
  return {
    reason: "Refused",
    message: `a LimitRange of the namespace does not allow it (${text}): ${fit}change the LimitRange`,
  };
}

export const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();

/**
 * What Node.js and gRPC say if no DNS server answers. A server that knows no such name answers ENOTFOUND: then an address of the spec is wrong,
 * unless the name is a Service's.
 */
const UNRESOLVED = /EAI_AGAIN|Temporary failure in name resolution|Name resolution failed|ENOTFOUND \S+\.svc\b/;

const NAMES_REMEDY =
  "its names do not resolve: check that the cluster's DNS answers, and that NetworkPolicies let the pod ask it (chart: networkPolicy.dns names the DNS servers)";

export function isUnresolved(text: string | undefined): boolean {
  return UNRESOLVED.test(text ?? "");
}

/**
 * Returns the finding; if the text (default: the finding's message) is about a name that does not resolve, with the reason NamesNotResolved
 * and the remedy.
 */
export function withNames(finding: Finding, text: string | undefined = finding.message): Finding {
  if (!isUnresolved(text)) return finding;
  return { reason: "NamesNotResolved", message: `${finding.message}; ${NAMES_REMEDY}` };
}
