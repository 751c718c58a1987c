/**
 * Decides when a changed status is written. All runs share the controller's requests to the API server, so changes that a person waits for
 * are written at once, progress while requests are to spare, and counts now and then. Pure.
 */
import type { Condition, TrainingRunStatus } from "../../../crds/trainingrun.ts";
import { stableJson } from "../desired/names.ts";

/** Counts that change by themselves (executions, actors, display) are written at most this often. */
export const STATUS_SECONDS = 10;
/**
 * Limit of one run's status writes, because a learner decides how often its status changes: a burst, then one each STATUS_REFILL_SECONDS.
 */
export const STATUS_BURST = 10;
export const STATUS_REFILL_SECONDS = 2;
/** Time until a held-back status is considered again while the controller has no request to spare. */
const SPARE_SECONDS = 5;

/**
 * - `end`: the run is over or suspended. A learner reports this only once, so it is always written at once.
 * - `state`: phase, conditions, number of replicas, checkpoint.
 * - `progress`: the learner's activity, and finished iterations.
 * - `counts`: numbers that change with every execution.
 */
export type StatusChange = "none" | "counts" | "progress" | "state" | "end";

const ENDS: (TrainingRunStatus["phase"] | undefined)[] = ["Succeeded", "Failed", "Suspended"];

export function changeOf(before: TrainingRunStatus, desired: TrainingRunStatus): StatusChange {
  const same = (pick: (status: TrainingRunStatus) => unknown) => stableJson(pick(before)) === stableJson(pick(desired));
  if (same((it) => it)) return "none";
  if (desired.phase !== before.phase && ENDS.includes(desired.phase)) return "end";
  if (!same(stateOf)) return "state";
  return same(withoutCounts) ? "counts" : "progress";
}

/**
 * @param ownSeconds until the run may have its next write
 * @param hasSpare whether the controller could send many more requests at once
 * @returns the seconds until the status may be written; 0: now
 */
export function statusWaitSeconds(
  change: Exclude<StatusChange, "none">,
  { sinceSeconds, ownSeconds, hasSpare }: { sinceSeconds: number; ownSeconds: number; hasSpare: boolean },
): number {
  if (change === "end") return 0;
  const countSeconds = change === "counts" ? STATUS_SECONDS - sinceSeconds : 0;
  const spareSeconds = change === "state" || hasSpare ? 0 : SPARE_SECONDS;
  return Math.max(0, countSeconds, ownSeconds, spareSeconds);
}

function withoutCounts({ executions: _, actors, display, ...rest }: TrainingRunStatus) {
  const { desired, replicas, waitingReason } = actors ?? {};
  return { ...rest, actors: { desired, replicas, waitingReason }, display: { ...display, actors: undefined } };
}

function stateOf(status: TrainingRunStatus) {
  const {
    display: _,
    iteration,
    policyVersion,
    score,
    meanDurationSeconds,
    engineSeconds,
    percent,
    estimatedCompletion,
    generation,
    ...rest
  } = withoutCounts(status);
  const { ready, replicas } = generation ?? {};
  return { ...rest, generation: { ready, replicas }, conditions: (status.conditions ?? []).map(withoutDoing) };
}

/** The reason of a run in progress is the learner's activity, which changes several times in an iteration. */
function withoutDoing({ reason, message, ...rest }: Condition) {
  return rest.type === "Progressing" && rest.status === "True" ? rest : { ...rest, reason, message };
}
