/** Computes a run's conditions from those of its parts, for `kubectl describe` and `kubectl wait`. Pure. */
import type { PhaseName } from "../../../proto/service.ts";
import { contendedCondition } from "../claims/claims.ts";
import { learnerPhase, type Observed } from "../observe.ts";
import type { ScalePlan } from "../parts/actors/scale.ts";
import { isOver, type LifecyclePlan } from "../parts/lifecycle/lifecycle.ts";
import {
  type ConditionType,
  condition,
  isBlocker,
  type NewCondition,
  type Reason,
  type RefusedChildren,
} from "./conditions.ts";
import { summaryOf } from "./summary.ts";
import { timeOf } from "./values.ts";

export interface ConditionsFacts {
  observed: Observed;
  lifecycle: LifecyclePlan;
  scale: Pick<ScalePlan, "desired">;
  /** Children that the API server refused. */
  refused: RefusedChildren;
  /** The conditions of all parts, in their order. */
  conditions: NewCondition[];
  nowMs: number;
}

/** They say whether a run is over, stopped or admitted: their reasons never make it not ready. */
const OUTCOMES: ConditionType[] = ["Succeeded", "Failed", "Suspended", "Admitted"];

export function conditionsOf(facts: ConditionsFacts): NewCondition[] {
  const { lifecycle, refused, conditions } = facts;
  const conditionOf = (type: ConditionType) => conditions.find((it) => it.type === type)!;
  const learner = conditionOf("LearnerAvailable");
  const progressing = progressingCondition(facts, learner, conditionOf("ActorsScaled"));
  const parts = conditions.filter(({ type }) => !OUTCOMES.includes(type));
  const blocked = [...parts, progressing].find(({ reason }) => isBlocker(reason)) ?? refused.blocked;
  const unapplied = refused.blocked ?? refused.other;
  const over = isOver(lifecycle.stage);
  const stopped = lifecycle.stage === "Suspended";
  const available = learner.status === "True";
  const { run } = facts.observed;
  const summary = summaryOf({
    over,
    stopped,
    blocked,
    conditions,
    nowMs: facts.nowMs,
    trains: available && !blocked && !over && !stopped,
    waiting: { reason: available ? "Starting" : learner.reason, message: learner.message },
    before: run.status ?? {},
    generation: run.metadata.generation,
  });
  return [
    ...summary,
    ...conditions,
    progressing,
    ...contendedCondition(run),
    ...(unapplied ? [condition("ObjectsApplied", false, unapplied)] : []),
  ];
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
function blockedMessage({ observed, scale }: ConditionsFacts, actors: NewCondition): string | undefined {
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
  return unixMs === undefined ? "" : ` since ${timeOf(unixMs)}`;
}

function progressingCondition(facts: ConditionsFacts, learner: NewCondition, actors: NewCondition): NewCondition {
  const { observed, lifecycle } = facts;
  const { link, run } = observed;
  if (isOver(lifecycle.stage))
    return condition("Progressing", false, { reason: "Finished", message: "the run is over" });
  if (learner.status !== "True" || !link?.status) return condition("Progressing", false, learner);
  const trouble = blockedMessage(facts, actors);
  if (trouble) return condition("Progressing", false, { reason: "NoResults", message: trouble });
  const { iteration } = link.status;
  const [reason, what] = DOING[learnerPhase(link) ?? "STARTING"] ?? ["Starting", "the learner starts"];
  const round = iteration ? `iteration ${iteration} of ${run.spec.stopping.iterations}: ` : "";
  return condition("Progressing", true, { reason, message: `${round}${what}` });
}
