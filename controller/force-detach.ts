/** `spec.learner.storage.forceDetach`: what a person would do for a learner whose node is lost. */
import { type Pass, tell } from "./context.ts";
import { POD } from "./kube/resources.ts";
import { nodeLossOf, OVERDUE_SECONDS, overdueSeconds } from "./node-loss.ts";

/**
 * Deletes the learner's pod by force, where the run allows it and its node is lost. The volume is detached by
 * Kubernetes, and the fence in the run folder stops a learner that runs on there as soon as it sees it.
 *
 * @returns the seconds until the pod is overdue
 */
export async function forceDetach(pass: Pass): Promise<number | undefined> {
  const { observed, memory, nowMs } = pass;
  const pod = observed.leavingPod;
  const { forceDetach } = observed.run.spec.learner.storage;
  if (!forceDetach || !pod || memory.forceDeleted === pod.metadata.uid) return undefined;
  if (!nodeLossOf(pod, nowMs)?.overdue) {
    const waitSeconds = OVERDUE_SECONDS - overdueSeconds(pod, nowMs);
    return waitSeconds > 0 ? waitSeconds : undefined;
  }
  await pass.writes.remove(POD, pod, { gracePeriodSeconds: 0 });
  memory.forceDeleted = pod.metadata.uid;
  const { name } = pod.metadata;
  tell(
    pass,
    "Warning",
    "PodForceDeleted",
    `pod ${name} was deleted by force: its node ${pod.spec!.nodeName} does not answer (spec.learner.storage.forceDetach)`,
    "ForceDelete",
  );
  return undefined;
}
