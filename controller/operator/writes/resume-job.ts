/** Jobs that were suspended by hand. A queue suspends and resumes Jobs with its label; every other Job of a run must run. */
import { type Look, recordEvent } from "../context.ts";
import { QUEUE_NAME } from "../desired/names.ts";
import { JOB, type Job } from "../kube/resources.ts";
import { jobState } from "../parts/actors/actor-state.ts";
import type { Finding } from "../status/conditions.ts";
import { timeOf } from "../status/values.ts";

/** On a Job: when the controller resumed it. */
const RESUMED = "longrun.dev/resumed";
/** A Job that is suspended again sooner is not resumed again, because something other than a person suspends it. */
const RESUME_SECONDS = 600;

export function isSuspendedByHand(job: Job): boolean {
  const { labels, deletionTimestamp } = job.metadata;
  const isSuspended = job.spec?.suspend === true && !deletionTimestamp && jobState(job) === undefined;
  return isSuspended && labels?.[QUEUE_NAME] === undefined;
}

/** Resumes the Job if it was suspended by hand. @throws ApiError */
export async function resumeJob(look: Look, job: Job): Promise<void> {
  const { nowMs, writes } = look;
  const resumedMs = Date.parse(job.metadata.annotations?.[RESUMED] ?? "");
  if (!isSuspendedByHand(job) || nowMs - resumedMs < RESUME_SECONDS * 1000) return;
  const annotations = { [RESUMED]: timeOf(nowMs) };
  await writes.patch(JOB, job, { metadata: { annotations }, spec: { suspend: false } });
  recordEvent(look, "Repaired", `Job ${job.metadata.name} was suspended (spec.suspend), and is resumed`);
}

/** Returns who keeps the Job suspended; undefined if it is not suspended. */
export function suspendedFinding(job: Job | undefined): Finding | undefined {
  if (!job?.spec?.suspend) return undefined;
  const { name } = job.metadata;
  const message = isSuspendedByHand(job)
    ? `Job ${name} is suspended, and again within ${RESUME_SECONDS} s after the controller had resumed it: stop what sets its spec.suspend, such as a queue for Jobs without the label ${QUEUE_NAME}`
    : `a queue has suspended Job ${name}, and resumes it when it admits it`;
  return { reason: "SchedulingGated", message };
}
