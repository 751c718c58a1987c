/**
 * Ready, Stalled and Reconciling: what a run is as a whole, as kstatus (Flux), Argo CD and `kubectl wait` read it. Pure.
 * https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
 */
import type { TrainingRunStatus } from "../../../crds/trainingrun.ts";
import {
  type ConditionType,
  condition,
  type Finding,
  findCondition,
  type NewCondition,
  REASONS,
} from "./conditions.ts";

/** A run that somebody must help is Stalled when it has not been as its spec asks for this long, like a Deployment. */
export const STALLED_SECONDS = 600;

export interface SummaryFacts {
  /** The learner trains, and nothing blocks the run. */
  trains: boolean;
  over: boolean;
  /** Neither over nor to be run now. */
  stopped: boolean;
  /** What blocks a run that is neither over nor stopped. */
  blocked: Finding | undefined;
  /** Why a run is not ready that nothing blocks. */
  waiting: Finding;
  conditions: readonly NewCondition[];
  before: TrainingRunStatus;
  generation: number;
  nowMs: number;
}

/** Returns Ready and, if it is not True, either Stalled or Reconciling. */
export function summaryOf(facts: SummaryFacts): NewCondition[] {
  const of = (type: ConditionType) => facts.conditions.find((it) => it.type === type)!;
  const { over, stopped, blocked } = facts;
  if (over) {
    const { status, message } = of("Succeeded");
    const succeeded = status === "True";
    const ready = condition("Ready", succeeded, { reason: "Finished", message });
    return succeeded ? [ready] : [ready, condition("Stalled", true, of("Failed"))];
  }
  if (facts.trains) return [condition("Ready", true, { reason: "Training", message: "the learner trains" })];
  if (stopped) {
    const suspended = of("Suspended");
    const isStopped = suspended.status === "True";
    const ready = condition("Ready", isStopped, suspended);
    return isStopped ? [ready] : [ready, condition("Reconciling", true, suspended)];
  }
  const finding = blocked ?? facts.waiting;
  const stalled = blocked !== undefined && isStalled(blocked, facts);
  return [condition("Ready", false, finding), condition(stalled ? "Stalled" : "Reconciling", true, finding)];
}

function isStalled({ reason }: Finding, { before, generation, nowMs }: SummaryFacts): boolean {
  const { stalls }: { stalls?: "AtOnce" | "Never"; event?: string } = REASONS[reason];
  if (stalls !== undefined) return stalls === "AtOnce";
  if (before.observedGeneration !== generation) return false;
  if (findCondition(before.conditions, "Stalled")?.status === "True") return true;
  return nowMs - reconcilingSinceMs(before) >= STALLED_SECONDS * 1000;
}

/** Returns when the run began to reconcile; the time in a queue does not count. */
function reconcilingSinceMs({ conditions }: TrainingRunStatus): number {
  const sinceMs = (type: ConditionType) => {
    const { status, lastTransitionTime = "" } = findCondition(conditions, type) ?? {};
    return status === "True" ? Date.parse(lastTransitionTime) : Number.NaN;
  };
  const since = sinceMs("Reconciling");
  return Math.max(since, sinceMs("Admitted") || since) || Number.POSITIVE_INFINITY;
}

/** Returns the seconds until a run with this status may be stalled; undefined if time alone does not change it. */
export function stallSeconds(status: TrainingRunStatus, nowMs: number): number | undefined {
  const seconds = (reconcilingSinceMs(status) - nowMs) / 1000 + STALLED_SECONDS;
  return Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;
}
