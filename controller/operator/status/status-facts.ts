/** The facts from which the status of a TrainingRun is computed, and functions that several of its parts share. Pure. */
import type { ImagesStatus, NotificationStatus, ResultsStatus, TrainingRunStatus } from "../../../crds/trainingrun.ts";
import type { LifecyclePlan, Stage } from "../lifecycle.ts";
import { livingLearner, type Observed, type ObservedActor } from "../observe.ts";
import type { ScalePlan } from "../parts/actors/scale.ts";
import type { GenerationFacts, GenerationPlan } from "../parts/generators/generation.ts";
import type { LearnerState } from "../parts/learner/learner-state.ts";
import { podBlocker } from "./blockers.ts";
import type { Finding, RefusedChildren } from "./conditions.ts";

export interface StatusFacts {
  observed: Observed;
  lifecycle: LifecyclePlan;
  learner: LearnerState;
  scale: ScalePlan;
  /** Children that the API server refused. */
  refused: RefusedChildren;
  /** Why this reconcile could not create actors, such as a quota. */
  actorsRefused: Finding | undefined;
  /** Undefined: the run has no generators. */
  generation?: GenerationPlan | undefined;
  /** Why this reconcile could not create generators. */
  generationRefused?: Finding | undefined;
  /** See unusedSince of generation.ts. */
  unusedSinceMs?: GenerationFacts["unusedSinceMs"];
  /** The checkpoint that the learner answered a suspension with. */
  written?: TrainingRunStatus["checkpoint"];
  /** Delivery state of the webhook, if this process knows more than the status. */
  notification?: NotificationStatus | undefined;
  images?: ImagesStatus | undefined;
  results?: ResultsStatus | undefined;
  nowMs: number;
}

export function isOver(stage: Stage): boolean {
  return stage === "Ended" || stage === "Ending";
}

/** Whether no learner is wanted any more but its pod still exists. */
export function isStopping({ observed, lifecycle: { stage } }: StatusFacts): boolean {
  return (stage === "Suspended" || stage === "Queued") && livingLearner(observed) !== undefined;
}

/** Returns why the first actor waits; pods of one kind mostly wait for the same reason. */
export function waitingReason(waiting: ObservedActor[]): Finding | undefined {
  if (waiting.some(({ job }) => job.spec?.suspend))
    return {
      reason: "SchedulingGated",
      message: "a queue has suspended their Jobs, and resumes them when it admits them",
    };
  for (const { pod } of waiting) {
    const blocker = pod && podBlocker(pod, "actors");
    if (blocker) return blocker;
  }
  return undefined;
}
