/** The conditions that say whether a run is over, stopped or admitted. Pure. */
import type { TrainingRunStatus } from "../../../../crds/trainingrun.ts";
import { livingLearner, type Observed } from "../../observe.ts";
import { condition, findCondition, type NewCondition, type Reason } from "../../status/conditions.ts";
import { exhaustion, lastWords } from "../learner/learner-failures.ts";
import { resumes } from "../learner/learner-state.ts";
import { finalPhase, isOver, type LifecyclePlan } from "./lifecycle.ts";

interface LifecycleFacts {
  observed: Observed;
  lifecycle: LifecyclePlan;
  /** The checkpoint that the learner answered a suspension with. */
  written?: TrainingRunStatus["checkpoint"] | undefined;
}

export function lifecycleConditions(facts: LifecycleFacts): NewCondition[] {
  const { admission, stage } = facts.lifecycle;
  const admitted =
    admission && !isOver(stage) && condition("Admitted", admission.state === "admitted", admission.finding);
  return [...outcomeConditions(facts), suspendedCondition(facts), ...(admitted ? [admitted] : [])];
}

/** Whether no learner is wanted any more but its pod still exists. */
export function isStopping({ observed, lifecycle: { stage } }: LifecycleFacts): boolean {
  return (stage === "Suspended" || stage === "Queued") && livingLearner(observed) !== undefined;
}

/** Succeeded and Failed: each ends a `kubectl wait`. */
function outcomeConditions({ observed, lifecycle }: LifecycleFacts): NewCondition[] {
  const is = (outcome: "Succeeded" | "Failed" | undefined, reason: Reason, message: string, why: Reason = reason) => [
    condition("Succeeded", outcome === undefined ? "Unknown" : outcome === "Succeeded", { reason, message }),
    condition("Failed", outcome === "Failed", { reason: why, message }),
  ];
  const phase = finalPhase(observed);
  const said = lastWords(observed.link?.status?.message);
  if (lifecycle.stage === "Ended") {
    const before = observed.run.status?.conditions;
    const { status, reason, message } = findCondition(before, "Succeeded")!;
    const outcome = status === "True" ? "Succeeded" : "Failed";
    return is(outcome, reason as Reason, message, findCondition(before, "Failed")?.reason as Reason | undefined);
  }
  if (phase === "SUCCEEDED") return is("Succeeded", "Completed", said);
  if (phase === "FAILED_RUN") return is("Failed", "RunFailed", said);
  const exhausted = exhaustion(observed);
  if (exhausted) return is("Failed", "RunFailed", exhausted.message, exhausted.reason);
  return is(undefined, "InProgress", "the run is not over");
}

function suspendedCondition(facts: LifecycleFacts): NewCondition {
  const { observed, lifecycle, written } = facts;
  const before = findCondition(observed.run.status?.conditions, "Suspended");
  if (isStopping(facts)) {
    const pod = livingLearner(observed)!;
    return lifecycle.stage === "Suspended" && !observed.run.spec.suspend
      ? condition("Suspended", false, { reason: "Resumed", message: resumes(pod) })
      : condition("Suspended", false, {
          reason: "Suspending",
          message: `the learner's pod ${pod.metadata.name} ends`,
        });
  }
  if (lifecycle.stage === "Suspended") {
    if (before?.reason === "Suspended")
      return condition("Suspended", true, { reason: "Suspended", message: before.message });
    const { iteration } = written ?? observed.run.status?.checkpoint ?? {};
    const message = iteration
      ? `stopped; the volume has the checkpoint of iteration ${iteration}, from which a resume continues`
      : "stopped before the first checkpoint; a resume begins at the start";
    return condition("Suspended", true, { reason: "Suspended", message });
  }
  if (lifecycle.stage === "Queued" && observed.run.status?.startTime !== undefined)
    return condition("Suspended", true, {
      reason: "Evicted",
      message: "stopped until its queue admits it again; it continues from its newest checkpoint",
    });
  if (lifecycle.stage === "Suspending")
    return condition("Suspended", false, {
      reason: "Suspending",
      message: "actors finish and the learner writes a checkpoint",
    });
  const resumed = ["Suspended", "Suspending", "Evicted", "Resumed"].includes(before?.reason ?? "");
  return resumed && !observed.run.spec.suspend
    ? condition("Suspended", false, { reason: "Resumed", message: "the run continues from its newest checkpoint" })
    : condition("Suspended", false, { reason: "NotSuspended", message: "spec.suspend is false" });
}
