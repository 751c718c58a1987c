/**
 * `spec.results`: creates the Jobs that copy into the bucket, and computes `status.results`, which survives this process. There is one Job
 * at a time, and each copies the newest checkpoint at its start.
 */
import type { ResultsStatus } from "../../../../crds/trainingrun.ts";
import { type Look, recordEvent } from "../../context.ts";
import { childName, SPEC_HASH } from "../../desired/names.ts";
import { JOB, type Job, POD, type Pod } from "../../kube/resources.ts";
import { livingLearner, newest, type Observed } from "../../observe.ts";
import type { Trouble } from "../../part.ts";
import { eventBlocker, podBlocker, RESULTS_S3, volumeWait, withNames } from "../../status/blockers.ts";
import { clip } from "../../status/conditions.ts";
import { timeOf } from "../../status/values.ts";
import type { StepResult } from "../../steps.ts";
import { childOf } from "../../writes/ownership.ts";
import { resumeJob, suspendedFinding } from "../../writes/resume-job.ts";
import { jobState } from "../actors/actor-state.ts";
import { lastWords } from "../learner/learner-failures.ts";
import type { Warning } from "../learner/learner-state.ts";
import { volumeEvent } from "../lifecycle/deletion.ts";
import { hasEnded } from "../lifecycle/lifecycle.ts";
import { desiredResultsJob, markOf, type ResultsMark, resultsUrl } from "./desired.ts";

/** `NAME-results`, and its newest pod. */
export interface CopyJob {
  job: Job | undefined;
  pod: Pod | undefined;
}

export function observeResults({ observed: { run }, context: { cache } }: Look): CopyJob {
  const job = childOf<Job>(run, cache, JOB, "results");
  const pods = job ? cache.ownedBy<Pod>(POD, run.metadata.namespace, job.metadata.uid!) : [];
  return { job, pod: newest(pods) };
}

/** Returns the state of the run to copy; undefined before the first checkpoint. */
function markNow(observed: Observed): ResultsMark | undefined {
  const { results } = observed.run.spec;
  const iteration = observed.run.status?.checkpoint?.iteration;
  if (!results || iteration === undefined) return undefined;
  return { url: resultsUrl(results), iteration, final: hasEnded(observed) };
}

/** Whether a bucket with the copy `known` is older than this mark. */
const isNewer = (mark: ResultsMark, known: Partial<ResultsMark> | undefined): boolean =>
  known?.url !== mark.url || known.iteration !== mark.iteration || (mark.final && !known.final);

/** Whether the last copy of a finished run is missing; until it has succeeded or failed, the ttl does not delete the run. */
export function owesResults({ observed }: Look, { job }: CopyJob): boolean {
  const mark = markNow(observed);
  if (!observed.volume) return false; // there is nothing to copy from
  const hasFailed = job && jobState(job) === "failed";
  return mark?.final === true && !hasFailed && isNewer(mark, observed.run.status?.results);
}

/** Creates a Job if one is due. `againSeconds` is the time until the next Job is allowed. */
export async function reconcileResults(look: Look, copy: CopyJob): Promise<StepResult> {
  const { observed, nowMs, settings, writes } = look;
  const { run, volume } = observed;
  const { job, pod } = copy;
  const mark = markNow(observed);
  if (!mark || !volume || job?.metadata.deletionTimestamp) return {};
  if (observed.refusal && !hasEnded(observed)) return {};
  const desired = desiredResultsJob(run, volume.metadata.name, mark, livingLearner(observed) !== undefined, settings);
  if (!job) {
    if (isNewer(mark, run.status?.results)) await writes.create(JOB, desired);
    return {};
  }
  const state = jobState(job);
  const isOther = job.metadata.annotations?.[SPEC_HASH] !== desired.metadata.annotations![SPEC_HASH];
  if (state === undefined) {
    // A waiting pod may wait in vain: for another bucket, or for the learner's former node.
    const waits = (pod?.status?.phase ?? "Pending") === "Pending";
    if (isOther && waits) await writes.remove(JOB, job);
    else await resumeJob(look, job);
    return {};
  }
  // The status stores its end first; then it is deleted, so that the next Job can start.
  const isKnown =
    state === "succeeded"
      ? !isNewer(markOf(job), run.status?.results)
      : run.status?.results?.message === failureOf(observed, job, pod);
  if (!isKnown || (state === "succeeded" && !isNewer(mark, markOf(job)))) return {};
  const isAtOnce = state === "succeeded" ? mark.final : isOther;
  const waitMs = isAtOnce ? 0 : run.spec.results!.intervalSeconds * 1000 - (nowMs - endedMs(job));
  if (waitMs > 0) return { againSeconds: waitMs / 1000 };
  await writes.remove(JOB, job);
  return {};
}

/** Returns `status.results`. The last failure stays until a copy succeeds. */
export function resultsStatus(
  look: Look,
  copy: CopyJob,
  { refused, warning }: Partial<Trouble> = {},
): ResultsStatus | undefined {
  const { observed } = look;
  const { job, pod } = copy;
  const { run } = observed;
  if (!run.spec.results) return undefined;
  const url = resultsUrl(run.spec.results);
  const { message: earlier, ...before } = run.status?.results ?? {};
  const state = job && jobState(job);
  if (state === "succeeded") return { ...markOf(job!), pushedTime: timeOf(endedMs(job!)) };
  const notCreated = refused && `job/${childName(run, "results")} cannot be created: ${refused.message}`;
  const failure = state === "failed" ? failureOf(observed, job!, pod) : notCreated;
  const message = failure ?? waitOf(look, copy, warning);
  if (failure !== undefined && message !== earlier) recordEvent(look, "ResultsNotPushed", message!);
  const said = message ?? earlier;
  return { ...(before.url === url ? before : { url }), ...(said !== undefined && { message: clip(said) }) };
}

/** Returns why the last copy of a finished run failed, if `status.results` does not say so yet: the run is about to be deleted. */
export function untoldFailure({ observed }: Look, { job, pod }: CopyJob): string | undefined {
  const { run } = observed;
  const mark = markNow(observed);
  if (!job || !mark?.final || jobState(job) !== "failed" || !isNewer(mark, run.status?.results)) return undefined;
  const message = failureOf(observed, job, pod);
  return message === run.status?.results?.message ? undefined : message;
}

function failureOf(observed: Observed, job: Job, pod: Pod | undefined): string {
  const { run, volume } = observed;
  const ended = pod?.status?.containerStatuses?.[0]?.state?.terminated;
  const said = ended?.message
    ? withNames({ reason: "RunFailed", message: lastWords(ended.message) }).message
    : pod && podBlocker(pod, "learner", volume)?.message;
  const isLate = job.status?.conditions?.some(({ reason }) => reason === "DeadlineExceeded");
  const late = `it did not end within ${job.spec?.activeDeadlineSeconds} s (spec.results.deadlineSeconds)`;
  const why = isLate ? late : (said ?? `see kubectl logs job/${job.metadata.name}`);
  const head = `results could not be copied to ${resultsUrl(run.spec.results!)}: ${why}`;
  const next = nextOf(observed, job);
  // Kubernetes deletes the pod of a late Job, so the pod's last message is only in the status.
  const known = run.status?.results?.message;
  if (isLate && !said && known?.startsWith(head) && known.endsWith(next)) return known;
  return clip(`${head}${isLate && said ? `: ${said}` : ""}; ${next}`);
}

/** Returns the end of the message: when the next copy starts, or that the run's ttl is over before that. */
function nextOf(observed: Observed, job: Job): string {
  const { run, volume } = observed;
  const { intervalSeconds } = run.spec.results!;
  const { ttlSecondsAfterFinished: ttl } = run.spec;
  const expiryMs = Date.parse(run.status?.completionTime ?? "") + (ttl ?? Number.NaN) * 1000;
  if (!hasEnded(observed) || !(expiryMs <= endedMs(job) + intervalSeconds * 1000))
    return `it is tried again every ${intervalSeconds} s (spec.results.intervalSeconds)`;
  const { note } = volumeEvent(run, volume?.metadata.name ?? childName(run, "data"));
  return `the run is deleted ${ttl} s after its end (spec.ttlSecondsAfterFinished) without this copy: ${note}`;
}

/** Returns why the Job's pod does not run. */
function waitOf({ observed, nowMs }: Look, { job, pod }: CopyJob, warning: Warning | undefined): string | undefined {
  const { run, volume } = observed;
  const told = suspendedFinding(job) ?? (pod && podBlocker(pod, "learner", volume));
  const isOrdinary = pod && volumeWait(pod, { warning, claim: volume, nowMs });
  const blocker = told ?? (warning && !isOrdinary ? eventBlocker(warning, RESULTS_S3) : undefined);
  return blocker && `job/${childName(run, "results")} waits: ${blocker.message}`;
}

/** Unix milliseconds. A Job that has failed still waits for its pods to end: FailureTarget comes before Failed. */
function endedMs({ status }: Job): number {
  const condition = status?.conditions?.find(
    ({ type, status: is }) => is === "True" && /^(Complete|SuccessCriteriaMet|Failed|FailureTarget)$/.test(type),
  );
  return Date.parse(String(status?.completionTime ?? condition?.lastTransitionTime ?? ""));
}
