/** The state of an actor, from its Job, its pod and the learner's status. Pure. */
import type { Job, Pod } from "../../kube/resources.ts";

/**
 * | state | meaning | counts as an actor |
 * | --- | --- | --- |
 * | starting | its pod is not there yet, or does not run | yes |
 * | running | its pod runs, or the learner hears it | yes |
 * | leaving | its pod was evicted, preempted or deleted: it finishes what it can within its grace | no |
 * | lost | its node does not answer and the learner does not hear it; or the learner has not heard it for SILENT_ACTOR_SECONDS | no; its Job is removed |
 * | succeeded, failed | its Job is over | no |
 * | deleting | its Job is being deleted | no |
 * | orphaned | its Job has the run's label and no owner | no; its Job is removed |
 */
export type ActorState = "starting" | "running" | "leaving" | "lost" | "succeeded" | "failed" | "deleting" | "orphaned";

/**
 * A pod that exists this long after its grace period is on a node whose kubelet does not answer. Nothing waits for such a pod, because no
 * other pod could use its place.
 */
export const PAST_GRACE_SECONDS = 60;

/** An actor is lost if its pod runs and a connected learner has not heard it for this long. An actor may take 120 s to start. */
export const SILENT_ACTOR_SECONDS = 180;

/** Returns the time, in Unix milliseconds, after which nothing waits for this pod; undefined if it is not being deleted. */
export function pastGraceAtMs({ metadata }: Pod): number | undefined {
  // deletionTimestamp is the end of the grace period.
  const { deletionTimestamp } = metadata;
  return deletionTimestamp === undefined ? undefined : Date.parse(deletionTimestamp) + PAST_GRACE_SECONDS * 1000;
}

/** Whether a pod's containers have ended for good. */
export function isOver({ status }: Pod): boolean {
  return ["Succeeded", "Failed"].includes(status?.phase ?? "");
}

/** Returns whether the pod occupies resources on a node that other pods could use. */
export function takesRoom(pod: Pod, nowMs: number): boolean {
  const pastGrace = pastGraceAtMs(pod);
  return !isOver(pod) && !(pastGrace !== undefined && pastGrace <= nowMs);
}

/**
 * Returns whether the pod's node does not answer. The node controller then sets the pod's condition Ready to False without
 * a reason, and leaves the rest of the status as the kubelet wrote it. A kubelet gives a reason.
 */
export function isOnLostNode({ status }: Pod): boolean {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  const unexplained = ready?.status === "False" && (!ready.reason || ready.reason === "NodeLost");
  return status?.reason === "NodeLost" || (status?.phase === "Running" && unexplained);
}

const isDisruptionTarget = (pod: Pod | undefined): boolean =>
  pod?.status?.conditions?.some(({ type, status }) => type === "DisruptionTarget" && status === "True") ?? false;

/** @param connected whether the learner hears the actor */
export function actorState(job: Job, pod: Pod | undefined, connected: boolean, nowMs: number): ActorState {
  if (job.metadata.deletionTimestamp) return "deleting";
  const over = jobState(job);
  if (over) return over;
  // Kueue took the resources back: it deletes the pod, and resumes the Job later.
  if (job.spec?.suspend) return "starting";
  // An actor that the learner hears continues, even if its node's kubelet has no connection to the API server.
  if (pod && !connected && isOnLostNode(pod)) return "lost";
  const pastGrace = pod && pastGraceAtMs(pod);
  if (pastGrace !== undefined) return pastGrace <= nowMs ? "lost" : "leaving";
  if (isDisruptionTarget(pod)) return "leaving";
  return connected || pod?.status?.phase === "Running" ? "running" : "starting";
}

/** @returns undefined while the Job is not finished */
export function jobState({ status }: Job): "succeeded" | "failed" | undefined {
  const holds = (type: string) => status?.conditions?.some((it) => it.type === type && it.status === "True");
  if (holds("Complete") || holds("SuccessCriteriaMet")) return "succeeded";
  return holds("Failed") || holds("FailureTarget") ? "failed" : undefined;
}

/**
 * Returns whether the actor was disrupted, which is no failure of the actor or its programs: an unfinished program then
 * does not lose an attempt. If the pod of a failed Job is gone, the Job's condition says which rule of podFailurePolicy ended it.
 */
export function isDisrupted({ state, job, pod }: { state: ActorState; job: Job; pod: Pod | undefined }): boolean {
  if (state === "leaving" || state === "lost") return true;
  // The Job of a lost actor is removed, and ends when its pod does.
  if (state === "deleting") return pod !== undefined && isOnLostNode(pod);
  if (job.spec?.suspend) return pod?.metadata.deletionTimestamp !== undefined;
  if (state !== "failed") return false;
  const byRule = job.status?.conditions?.some(({ message }) => /has condition DisruptionTarget/.test(message ?? ""));
  return byRule === true || isDisruptionTarget(pod);
}

/**
 * Returns the running actors that a connected learner does not hear, each with the time of the start of the silence. An actor that is not
 * in `before` counts from now.
 */
export function silentSince(
  actors: readonly { name: string; state: ActorState; connected: boolean }[],
  learnerConnected: boolean,
  before: ReadonlyMap<string, number>,
  nowMs: number,
): Map<string, number> {
  const silent = actors.filter(({ state, connected }) => learnerConnected && state === "running" && !connected);
  return new Map(silent.map(({ name }) => [name, before.get(name) ?? nowMs]));
}
