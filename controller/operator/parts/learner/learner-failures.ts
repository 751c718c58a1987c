/**
 * Counts failures of the learner from its container's exit statuses, and ends the run after too many. Each end of a container counts once:
 * `status.failures` names the pod and the number of its counted ends, so a restarted controller neither forgets nor repeats one. Pure.
 */
import type { FailuresStatus } from "../../../../crds/trainingrun.ts";
import { EXIT_STATUS, type FailureKind } from "../../../../proto/exit-status.ts";
import { volumeWanted } from "../../../../proto/volume.ts";
import type { Observed } from "../../observe.ts";
import { clip, type Reason } from "../../status/conditions.ts";

type Pod = NonNullable<Observed["learnerPod"]>;
type Terminated = { exitCode: number; reason?: string; message?: string; finishedAt?: string };
type FailureClass = NonNullable<FailuresStatus["class"]>;

/** Exit statuses above this number are signals, by convention of shells and container runtimes. */
const SIGNALLED = 128;
/** SIGKILL and SIGTERM are sent from outside: by the kubelet after a failed probe, or by a node that shuts down. */
const FROM_OUTSIDE = [SIGNALLED + 9, SIGNALLED + 15];
/** The kubelet's exit code for a container whose real exit code is unknown. */
const UNKNOWN = 255;

const CLASSES: Record<Exclude<FailureKind, "input">, FailureClass> = {
  infrastructure: "Infrastructure",
  resource: "Resource",
  volumeFull: "Resource",
  fault: "Fault",
};

/** Remedies for a run that has failed for good. */
const REMEDIES: Record<FailureClass, string> = {
  Infrastructure: "check its node, GPU, volume and network",
  Resource:
    "raise spec.learner.resources.limits.memory, or lower algorithm.microBatchSize or model.generationBatchSize",
  Fault: "it is a bug or a damaged file: see the message, and report it with kubectl longrun debug",
};

/** Returns how the learner's container last ended; undefined if it has not ended yet. */
export function lastTermination(pod: Pod): Terminated | undefined {
  const container = learnerContainer(pod);
  return container?.state?.terminated ?? container?.lastState?.terminated;
}

/** Returns the last line of a log for a person: the last line that is not JSON, or the last message in JSON. */
export function lastWords(log: string | undefined): string {
  const lines = (log ?? "")
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const spoken = lines.filter((line) => !line.startsWith("{"));
  if (spoken.length > 0) return spoken.at(-1)!;
  try {
    const { msg } = JSON.parse(lines.at(-1) ?? "") as { msg?: unknown };
    if (typeof msg === "string") return msg;
  } catch {} // not JSON
  return lines.at(-1) ?? "it left no message; see its log";
}

export function failureKind({ exitCode, reason }: Terminated): FailureKind {
  if (reason === "OOMKilled") return "resource";
  const known = Object.entries(EXIT_STATUS).find(([, status]) => status === exitCode);
  if (known) return known[0] as FailureKind;
  // Status 0 without a request to stop: the kubelet stopped it after a failed probe.
  return [0, UNKNOWN, ...FROM_OUTSIDE].includes(exitCode) ? "infrastructure" : "fault";
}

/** Describes an end in words that follow "the learner". */
export function describeEnd(ended: Terminated): string {
  const { exitCode, reason, message } = ended;
  if (reason === "OOMKilled") return "was killed for memory";
  // A killed process leaves no message about its end.
  if (exitCode > SIGNALLED && exitCode < UNKNOWN) return `was killed by signal ${exitCode - SIGNALLED}`;
  if (exitCode === 0) return "was stopped, which the kubelet does when a probe fails";
  return `ended with status ${exitCode} (${lastWords(message)})`;
}

/** Returns the content of `status.failures`; undefined if the learner has not failed. */
export function learnerFailures({ run, link, learnerPod }: Observed): FailuresStatus | undefined {
  const before = run.status?.failures;
  const iteration = Math.max(run.status?.iteration ?? 0, (link?.status?.iteration ?? 1) - 1);
  const progressed = before !== undefined && iteration > (before.iteration ?? 0);
  // A suspension resets the count: a person is working on the run.
  const forgiven = progressed || run.spec.suspend === true;
  const known = before && forgiven ? { ...before, count: 0 } : before;
  const ends = learnerPod ? endsOf(learnerPod) : 0;
  const seen = learnerPod?.metadata.uid === before?.podUid ? (before?.podEnds ?? 0) : 0;
  if (ends <= seen || learnerPod === undefined || isDisrupted(learnerPod)) return known;
  const ended = lastTermination(learnerPod)!;
  const kind = failureKind(ended);
  if (kind === "input") return known;
  // Several ends that no controller saw count once: an iteration may have been finished between them.
  const counted = kind === "volumeFull" || run.spec.suspend ? 0 : 1;
  return {
    count: (known?.count ?? 0) + counted,
    class: CLASSES[kind],
    message: clip(`the learner ${describeEnd(ended)}`),
    ...(ended.finishedAt !== undefined && { lastFailureTime: ended.finishedAt }),
    iteration,
    ...(learnerPod.metadata.uid !== undefined && { podUid: learnerPod.metadata.uid }),
    podEnds: ends,
  };
}

/** Returns why the run has failed for good; undefined while its failures are within `spec.failurePolicy`. */
export function exhaustion(observed: Observed): { reason: Reason; message: string } | undefined {
  const { run, learnerPod, link } = observed;
  // The learner runs again and may have finished an iteration meanwhile: wait for its status before the run is called failed.
  const isRunning = learnerPod && learnerContainer(learnerPod)?.state?.running;
  if (isRunning && !(link?.connected && link.status)) return undefined;
  const failures = learnerFailures(observed);
  const { retries } = run.spec.failurePolicy;
  const { count = 0, class: reason = "Fault", message = "" } = failures ?? {};
  if (run.spec.suspend || count <= retries) return undefined;
  const times = count === 1 ? "failed" : `failed ${count} times without finishing an iteration, the last time it`;
  const { name } = run.metadata;
  return {
    reason,
    message: `the learner ${times}${count === 1 ? ": it" : ""} ${message.replace(/^the learner /, "")}; spec.failurePolicy.retries is ${retries}. ${capital(REMEDIES[reason])}; then kubectl longrun resume ${name}, or set spec.suspend to true and, once the run is Suspended, to false`,
  };
}

/** Returns whether the learner last ended because its volume is full. */
export function isVolumeFull(pod: Pod): boolean {
  const ended = lastTermination(pod);
  return ended !== undefined && failureKind(ended) === "volumeFull";
}

/** Returns the size of the volume that the learner asked for when it last ended; undefined if it did not. */
export function askedVolume(pod: Pod): string | undefined {
  return isVolumeFull(pod) ? volumeWanted(lastTermination(pod)?.message) : undefined;
}

/** Returns how often the learner's container has ended in this pod. The kubelet raises restartCount only when the next container starts. */
function endsOf(pod: Pod): number {
  const container = learnerContainer(pod);
  if (!container || !lastTermination(pod)) return 0;
  const { state, restartCount = 0 } = container;
  const hasEnded = state?.terminated !== undefined || state?.waiting?.reason === "CrashLoopBackOff";
  return Math.max(1, restartCount + (hasEnded ? 1 : 0));
}

/** Returns whether the pod was evicted, preempted or lost its node: no failure of the learner. */
function isDisrupted({ status }: Pod): boolean {
  return (
    status?.conditions?.some(({ type, status: holds }) => type === "DisruptionTarget" && holds === "True") ?? false
  );
}

function learnerContainer(pod: Pod) {
  return pod.status?.containerStatuses?.find(({ name }) => name === "learner");
}

const capital = (text: string) => text[0]!.toUpperCase() + text.slice(1);
