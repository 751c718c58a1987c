/**
 * Detects a learner's pod on a node that does not answer. Only the pod is read, because the controller may not read nodes.
 *
 * Kubernetes marks such a pod as not ready and deletes it after its toleration (300 s by default), but cannot complete the deletion without
 * the node's kubelet. The Deployment creates another pod, which waits for the volume.
 */

import type { Pod } from "../../kube/resources.ts";
import type { Observed } from "../../observe.ts";
import { containersOf } from "../../status/blockers.ts";
import type { Finding } from "../../status/conditions.ts";

/** A pod that still exists this long after its grace period is stuck: it is reported, and may be force-deleted. */
export const OVERDUE_SECONDS = 60;

/** Reason in the condition of a pod that the taint manager deletes because its node does not answer. */
const TAINTED = "DeletionByTaintManager";

interface NodeLoss {
  node: string;
  /** RFC 3339: when the node was last heard, or when the pod should have ended. */
  since: string;
  /** The pod should have ended long ago, but only its node could confirm that. */
  overdue: boolean;
}

/** @returns undefined if nothing in the pod shows that its node is lost */
export function nodeLossOf(pod: Pod, nowMs: number): NodeLoss | undefined {
  const { deletionTimestamp } = pod.metadata;
  const node = pod.spec?.nodeName;
  if (!node) return undefined;
  const overdue = overdueSeconds(pod, nowMs) >= OVERDUE_SECONDS;
  const since = unheardSince(pod);
  if (since !== undefined) return { node, since, overdue };
  const tainted = pod.status?.conditions?.some(({ type, reason }) => type === "DisruptionTarget" && reason === TAINTED);
  return overdue && tainted ? { node, since: deletionTimestamp!, overdue } : undefined;
}

/**
 * Returns when the node controller set Ready to False. A kubelet that does so gives a reason and marks the containers as not ready; the
 * node controller does neither.
 */
function unheardSince({ status }: Pod): string | undefined {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  const containers = status?.containerStatuses ?? [];
  if (ready?.status !== "False" || ready.reason || containers.length === 0) return undefined;
  return containers.every((it) => it.ready) ? String(ready.lastTransitionTime) : undefined;
}

/** Returns the seconds since the end of the pod's grace period; negative before it. */
export function overdueSeconds({ metadata: { deletionTimestamp } }: Pod, nowMs: number): number {
  return deletionTimestamp === undefined ? Number.NEGATIVE_INFINITY : (nowMs - Date.parse(deletionTimestamp)) / 1000;
}

/** Returns the finding about the learner's lost node; undefined if another pod of the learner runs. */
export function nodeLossFinding({ learnerPod, leavingPod, run }: Observed, nowMs: number): Finding | undefined {
  const next = learnerPod && containersOf(learnerPod).some(({ state }) => state?.running);
  const pod = [next ? undefined : leavingPod, learnerPod].find((it) => it && nodeLossOf(it, nowMs));
  if (!pod) return undefined;
  const { node, since, overdue } = nodeLossOf(pod, nowMs)!;
  const { name, deletionTimestamp } = pod.metadata;
  const silent = `node ${node} has not answered since ${since}`;
  const reason = "NodeLost";
  if (!overdue)
    return {
      reason,
      message: deletionTimestamp
        ? `${silent}: pod ${name} is being deleted, and its node must confirm its end`
        : `${silent}: Kubernetes deletes the learner's pod ${name} when its toleration is over (300 s unless spec.learner.podTemplate has another), and another pod replaces it`,
    };
  const help = `kubectl taint nodes ${node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, which detaches the volume at once, or kubectl delete pod ${name} --force`;
  const forced = run.spec.learner.storage.forceDetach
    ? "it is deleted by force (spec.learner.storage.forceDetach)"
    : `if the node is gone for good, ${help}; with spec.learner.storage.forceDetach: true the controller does the latter`;
  return { reason, message: `${silent}, so pod ${name} cannot end and keeps the volume: ${forced}` };
}
