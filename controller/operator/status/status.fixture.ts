/** Facts of a run that trains, and the status that the controller makes of them. */
import type { TrainingRunStatus } from "../../../crds/trainingrun.ts";
import { messages, type StatusMessage } from "../../../proto/service.ts";
import type { Stage } from "../lifecycle.ts";
import type { Observed } from "../observe.ts";
import type { ScalePlan } from "../parts/actors/scale.ts";
import { actorOf, linkOf, NOW_MS, observedOf, podOf, runOf } from "../run.fixture.ts";
import { type ConditionType, findCondition } from "./conditions.ts";
import { desiredStatus } from "./status.ts";
import type { StatusFacts } from "./status-facts.ts";

const { Phase } = messages;
export const RUN = runOf({ stopping: { iterations: 10 } });
export const SCALE: ScalePlan = {
  desired: 1,
  demand: { queued: 1, running: 0 },
  create: [],
  drain: [],
  remove: [],
  againSeconds: undefined,
  failures: 0,
};
export const CONNECTED = { available: true, reason: "Connected", message: "the learner answers" } as const;
export const facts = ({
  stage = "Running" as Stage,
  said = {} as StatusMessage,
  observed = {} as Partial<Observed>,
  ...rest
}: Omit<Partial<StatusFacts>, "observed"> & {
  stage?: Stage;
  said?: StatusMessage;
  observed?: Partial<Observed>;
}): StatusFacts => ({
  observed: observedOf(RUN, {
    actors: [actorOf(RUN, 0)],
    link: linkOf({ phase: Phase.EXECUTING, iteration: 5, ...said }),
    ...observed,
  }),
  ...{
    lifecycle: { stage, learnerReplicas: 1 },
    learner: CONNECTED,
    scale: SCALE,
    refused: {},
    actorsRefused: undefined,
    nowMs: NOW_MS,
  },
  ...rest,
});
export const statusOf = (change: Parameters<typeof facts>[0]) => desiredStatus(facts(change));
export const shown = ({ conditions = [] }: TrainingRunStatus, type: ConditionType) => {
  const { status, reason } = findCondition(conditions, type)!;
  return `${status} ${reason}`;
};
export const unschedulable = podOf(RUN, "actor", {
  conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "no memory" }],
});
