/** Computes the conditions of a TrainingRun for `kubectl describe` and `kubectl wait`. Pure. */
import { nothingToLearn, WARN_AFTER_ITERATIONS } from "../../../proto/nothing-to-learn.ts";
import type { PhaseName } from "../../../proto/service.ts";
import { finalPhase } from "../lifecycle.ts";
import { isActive, learnerPhase, livingLearner, type Observed } from "../observe.ts";
import type { ScalePlan } from "../parts/actors/scale.ts";
import { generationFinding } from "../parts/generators/generation.ts";
import { exhaustion, lastWords } from "../parts/learner/learner-failures.ts";
import { resumes } from "../parts/learner/learner-state.ts";
import { containersOf } from "./blockers.ts";
import { condition, type Finding, findCondition, isBlocker, type NewCondition, type Reason } from "./conditions.ts";
import { isOver, isStopping, type StatusFacts, waitingReason } from "./status-facts.ts";

export function conditionsOf(facts: StatusFacts): NewCondition[] {
  const { lifecycle, learner, refused } = facts;
  const [succeeded, failed] = outcomeConditions(facts);
  const suspended = suspendedCondition(facts);
  const actors = actorsCondition(facts);
  const generation = generationCondition(facts);
  const progressing = progressingCondition(facts, actors);
  const blocked =
    [learner, actors, ...generation, progressing].find(({ reason }) => isBlocker(reason)) ?? refused.blocked;
  const unapplied = refused.blocked ?? refused.other;
  const over = isOver(lifecycle.stage);
  const idle = over || lifecycle.stage === "Suspended";
  const { admission } = lifecycle;
  const ready = learner.available && !blocked && !idle;
  const readiness: Finding = ready
    ? { reason: "Training", message: "the learner trains" }
    : over
      ? { reason: "Finished", message: succeeded.message }
      : lifecycle.stage === "Suspended"
        ? { reason: suspended.reason, message: suspended.message }
        : (blocked ?? { reason: learner.available ? "Starting" : learner.reason, message: learner.message });
  return [
    condition("Ready", ready, readiness),
    succeeded,
    failed,
    suspended,
    condition("LearnerAvailable", learner.available, learner),
    actors,
    ...generation,
    progressing,
    ...(admission && !over ? [condition("Admitted", admission.state === "admitted", admission.finding)] : []),
    ...(unapplied ? [condition("ObjectsApplied", false, unapplied)] : []),
    ...(over ? [] : learningCondition(facts)),
  ];
}

/** After some iterations without a difference between rewards. */
function learningCondition({ observed }: StatusFacts): NewCondition[] {
  const { noSignalIterations = 0, validFraction = 0 } = observed.link?.status?.finished ?? {};
  if (noSignalIterations < WARN_AFTER_ITERATIONS) return [];
  const message = nothingToLearn(noSignalIterations, validFraction);
  return [condition("Learning", false, { reason: "NothingToLearn", message })];
}

/** Succeeded and Failed: each ends a `kubectl wait`. */
function outcomeConditions({ observed, lifecycle }: StatusFacts): [succeeded: NewCondition, failed: NewCondition] {
  const is = (outcome: "Succeeded" | "Failed" | undefined, reason: Reason, message: string, why: Reason = reason) =>
    [
      condition("Succeeded", outcome === undefined ? "Unknown" : outcome === "Succeeded", { reason, message }),
      condition("Failed", outcome === "Failed", { reason: why, message }),
    ] as [NewCondition, NewCondition];
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

function suspendedCondition(facts: StatusFacts): NewCondition {
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

function actorsCondition({ observed, lifecycle, scale, actorsRefused }: StatusFacts): NewCondition {
  const active = observed.actors.filter(isActive);
  const is = (status: boolean | "Unknown", reason: Reason, message: string) =>
    condition("ActorsScaled", status, { reason, message });
  if (["Ended", "Suspended", "Queued"].includes(lifecycle.stage))
    return is(active.length === 0, active.length === 0 ? "NoWork" : "Scaling", "the run needs no actors now");
  if (actorsRefused) return is(false, actorsRefused.reason, `actors cannot be created: ${actorsRefused.message}`);
  const failing = failingActors(observed, scale);
  if (failing) return is(false, "ActorsFailing", failing);
  const waiting = active.filter(({ state }) => state === "starting");
  const blocker = waitingReason(waiting);
  if (blocker) return is(false, blocker.reason, `actors wait: ${blocker.message}`);
  if (scale.desired === undefined)
    return is("Unknown", "LearnerUnavailable", "the number of actors stays until the learner reports its demand");
  if (scale.desired === 0 && active.length === 0) return is(true, "NoWork", "no execution waits or runs");
  const staying = active.length - scale.drain.length;
  return waiting.length === 0 && staying === scale.desired && scale.create.length === 0
    ? is(true, "AsDesired", "the number of actors matches the work")
    : is(false, "Scaling", "actors start or finish");
}

function generationCondition(facts: StatusFacts): NewCondition[] {
  const { observed, generation: plan, generationRefused: refused, unusedSinceMs = new Map(), nowMs } = facts;
  if (!observed.run.spec.generation || !plan) return [];
  const { available, ...finding } = generationFinding(observed, { plan, refused, unusedSinceMs, nowMs });
  return [condition("GenerationAvailable", available, finding)];
}

/** Returns the message of the actor that failed last, after several failures in a row. */
function failingActors({ run, actors }: Observed, { failures }: ScalePlan): string | undefined {
  if (failures < run.spec.restart.maxFailures || failures === 0) return undefined;
  const failed = actors.filter(({ state }) => state === "failed").toSorted((a, b) => b.generation - a.generation)[0];
  const ended =
    failed?.pod && containersOf(failed.pod).find(({ state }) => state?.terminated?.exitCode)?.state?.terminated;
  const said = ended ? `status ${ended.exitCode}: ${lastWords(ended.message)}` : "no pod is left to ask";
  return `actors fail one after the other (${failed?.name}, ${said}); one at a time is tried: see kubectl logs job/${failed?.name} -c supervisor`;
}

const DOING: Partial<Record<PhaseName, [reason: Reason, what: string]>> = {
  STARTING: ["Starting", "the learner starts"],
  GENERATING: ["Generating", "the model writes programs"],
  EXECUTING: ["Executing", "programs run"],
  EVALUATING: ["Evaluating", "the batch is prepared for learning"],
  TRAINING: ["Training", "the model learns from the batch"],
  CHECKPOINTING: ["Checkpointing", "a checkpoint is written"],
  FINAL_EVALUATION: ["Evaluating", "the model is evaluated"],
  WARMING_UP: ["WarmingUp", "the model learns from given answers (spec.warmStart)"],
};

/** Returns the learner's reason for having no results, and the time since which, if a person must act. */
function blockedMessage({ observed, scale }: StatusFacts, actors: NewCondition): string | undefined {
  const { blocked, blockedSinceMs, executions } = observed.link?.status ?? {};
  const since = sinceOf(blockedSinceMs);
  const queued = executions?.queued ?? 0;
  const waiting = queued === 1 ? "1 execution is queued" : `${queued} executions are queued`;
  switch (blocked) {
    case "NoActors": {
      const why = isBlocker(actors.reason)
        ? actors.message
        : scale.desired === 0
          ? "no actor is requested (spec.actors)"
          : "see condition ActorsScaled and the pods of actors";
      return `no actor is connected to the learner${since}: ${waiting}; ${why}`;
    }
    case "NoFreeSlots":
      return `actors are connected but take no execution${since}: ${waiting}; see the logs of their supervisors`;
    default:
      return undefined;
  }
}

/** Returns an empty text if the learner does not report the time, as learners of 0.2. */
function sinceOf(unixMs: number | undefined): string {
  return unixMs === undefined ? "" : ` since ${new Date(unixMs).toISOString().replace(/\.\d+Z/, "Z")}`;
}

function progressingCondition(facts: StatusFacts, actors: NewCondition): NewCondition {
  const { observed, lifecycle, learner } = facts;
  const { link, run } = observed;
  if (isOver(lifecycle.stage))
    return condition("Progressing", false, { reason: "Finished", message: "the run is over" });
  if (!learner.available || !link?.status)
    return condition("Progressing", false, { reason: learner.reason, message: learner.message });
  const trouble = blockedMessage(facts, actors);
  if (trouble) return condition("Progressing", false, { reason: "NoResults", message: trouble });
  const { iteration } = link.status;
  const [reason, what] = DOING[learnerPhase(link) ?? "STARTING"] ?? ["Starting", "the learner starts"];
  const round = iteration ? `iteration ${iteration} of ${run.spec.stopping.iterations}: ` : "";
  return condition("Progressing", true, { reason, message: `${round}${what}` });
}
