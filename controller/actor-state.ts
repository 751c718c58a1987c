/** How an actor stands, from its Job, its pod and what the learner says of it. Pure. */
import type { Job, Pod } from "./kube/resources.ts";

/**
 * | state | meaning | counts as an actor |
 * | --- | --- | --- |
 * | starting | its pod is not there yet, or does not run | yes |
 * | running | its pod runs, or the learner hears it | yes |
 * | leaving | its pod was evicted, preempted or deleted: it finishes what it can within its grace | no |
 * | lost | its node is not heard any more, nor does the learner hear it; or the learner has not heard it for long | no; its Job is removed |
 * | succeeded, failed | its Job is over | no |
 * | deleting | its Job is being deleted | no |
 * | orphaned | its Job has the run's label and no owner | no; its Job is removed |
 */
export type ActorState = "starting" | "running" | "leaving" | "lost" | "succeeded" | "failed" | "deleting" | "orphaned";

/**
 * A pod that is there so long after its grace is on a node that no kubelet speaks for. It takes nothing that anybody else
 * could have, so nothing waits for it: Kueue ends such pods after the same time.
 */
export const PAST_GRACE_SECONDS = 60;

/** An actor whose pod runs, and that a connected learner has not heard for so long, is lost. Starting takes up to 120 s. */
export const SILENT_ACTOR_SECONDS = 180;

/** Unix milliseconds from which nothing waits for this pod any more; undefined while nobody deletes it. */
export function pastGraceAtMs({ metadata }: Pod): number | undefined {
  // deletionTimestamp is when its grace is over.
  const { deletionTimestamp } = metadata;
  return deletionTimestamp === undefined ? undefined : Date.parse(deletionTimestamp) + PAST_GRACE_SECONDS * 1000;
}

/** Whether it holds a place on a node that others could have. */
export function takesRoom(pod: Pod, nowMs: number): boolean {
  const { phase } = pod.status ?? {};
  const pastGrace = pastGraceAtMs(pod);
  return phase !== "Succeeded" && phase !== "Failed" && !(pastGrace !== undefined && pastGrace <= nowMs);
}

/**
 * Whether its node is not heard any more. The node controller then sets a pod's condition Ready to False and leaves the
 * rest as the kubelet wrote it last; a kubelet that sets it gives a reason.
 */
export function isOnLostNode({ status }: Pod): boolean {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  const unexplained = ready?.status === "False" && (!ready.reason || ready.reason === "NodeLost");
  return status?.reason === "NodeLost" || (status?.phase === "Running" && unexplained);
}

const isDisruptionTarget = (pod: Pod | undefined): boolean =>
  pod?.status?.conditions?.some(({ type, status }) => type === "DisruptionTarget" && status === "True") ?? false;

/** @param connected whether the learner hears it */
export function actorState(job: Job, pod: Pod | undefined, connected: boolean, nowMs: number): ActorState {
  if (job.metadata.deletionTimestamp) return "deleting";
  const over = jobState(job);
  if (over) return over;
  // A queue took its place back: its pod goes, and comes again when the queue says so.
  if (job.spec?.suspend) return "starting";
  // An actor that the learner hears goes on, though its node's kubelet is cut off from the API server.
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
 * Whether the actor was taken away, which is neither its failure nor its programs': what it did not hand in does not count
 * as an attempt. Of a Job that is over its pod may be gone; the Job then says which rule of podFailurePolicy ended it.
 */
export function isDisrupted({ state, job, pod }: { state: ActorState; job: Job; pod: Pod | undefined }): boolean {
  if (state === "leaving" || state === "lost") return true;
  // Its Job is removed because it is lost, and goes when its pod does.
  if (state === "deleting") return pod !== undefined && isOnLostNode(pod);
  if (job.spec?.suspend) return pod?.metadata.deletionTimestamp !== undefined;
  if (state !== "failed") return false;
  const byRule = job.status?.conditions?.some(({ message }) => /has condition DisruptionTarget/.test(message ?? ""));
  return byRule === true || isDisruptionTarget(pod);
}

/**
 * Actors that run and that a connected learner does not hear, and since when. What is remembered may be lost: then it
 * counts from now.
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
