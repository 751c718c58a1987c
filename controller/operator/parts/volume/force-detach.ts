/** `spec.learner.storage.forceDetach`: frees the volume of a learner whose node is lost. */
import { type Look, recordEvent } from "../../context.ts";
import { POD } from "../../kube/resources.ts";
import type { StepResult } from "../../steps.ts";
import { nodeLossOf, OVERDUE_SECONDS, overdueSeconds } from "./node-loss.ts";

export interface DetachMemory {
  /** Uid of the learner's pod that was deleted by force. */
  forceDeleted?: string | undefined;
}

/**
 * Force-deletes the learner's pod if the run allows it and the pod's node is lost. Kubernetes then detaches the volume. A learner that
 * still runs there stops as soon as it sees the fence in the run folder. `againSeconds` is the time until the pod is overdue.
 */
export async function forceDetach(look: Look<DetachMemory>): Promise<StepResult<DetachMemory>> {
  const { observed, memory, nowMs } = look;
  const pod = observed.leavingPod;
  const { forceDetach } = observed.run.spec.learner.storage;
  if (!forceDetach || !pod || memory.forceDeleted === pod.metadata.uid) return {};
  if (!nodeLossOf(pod, nowMs)?.overdue) {
    const waitSeconds = OVERDUE_SECONDS - overdueSeconds(pod, nowMs);
    return waitSeconds > 0 ? { againSeconds: waitSeconds } : {};
  }
  await look.writes.remove(POD, pod, { gracePeriodSeconds: 0 });
  const { name } = pod.metadata;
  const note = `pod ${name} was deleted by force: its node ${pod.spec!.nodeName} does not answer (spec.learner.storage.forceDetach)`;
  recordEvent(look, "PodForceDeleted", note);
  return { remember: { forceDeleted: pod.metadata.uid } };
}
