/**
 * When a status that differs from the stored one is written. Every run shares the controller's requests to the API server,
 * so what matters goes first: what a person waits for at once, progress while there is room, counts once in a while. Pure.
 */
import type { Condition, TrainingRunStatus } from "../crds/trainingrun.ts";
import { stableJson } from "./desired/names.ts";

/** Counts that change by themselves (executions, actors, display) are written at most this often. */
export const STATUS_SECONDS = 10;
/** Writes of one run's status at once, and seconds until it may have one more: a learner decides how often it changes. */
export const STATUS_BURST = 10;
export const STATUS_REFILL_SECONDS = 2;
/** A status that can wait is looked at again after this, where the controller has no request to spare. */
const SPARE_SECONDS = 5;

/**
 * - `end`: the run is over or suspended. No learner can say that twice: it is always written at once.
 * - `state`: phase, conditions, what is scaled, checkpoint.
 * - `progress`: what the learner does, and finished iterations.
 * - `counts`: what moves with every execution.
 */
export type StatusChange = "none" | "counts" | "progress" | "state" | "end";

const ENDS: (TrainingRunStatus["phase"] | undefined)[] = ["Succeeded", "Failed", "Suspended"];

export function changeOf(before: TrainingRunStatus, desired: TrainingRunStatus): StatusChange {
  const same = (of: (status: TrainingRunStatus) => unknown) => stableJson(of(before)) === stableJson(of(desired));
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

/** While it progresses, the reason says what the learner does, which changes several times in an iteration. */
function withoutDoing({ reason, message, ...rest }: Condition) {
  return rest.type === "Progressing" && rest.status === "True" ? rest : { ...rest, reason, message };
}
