/** Facts of a run that trains, and the status that the controller makes of them. */
import type { NotificationStatus, TrainingRunStatus } from "../../../crds/trainingrun.ts";
import { messages, type StatusMessage } from "../../../proto/service.ts";
import type { Look } from "../context.ts";
import type { Observed } from "../observe.ts";
import type { Done, Sum } from "../part.ts";
import { actors } from "../parts/actors/part.ts";
import type { ScalePlan } from "../parts/actors/scale.ts";
import type { GenerationPlan } from "../parts/generators/generation.ts";
import { generators } from "../parts/generators/part.ts";
import { learningCondition } from "../parts/learner/conditions.ts";
import { learnerFailures } from "../parts/learner/learner-failures.ts";
import type { LifecyclePlan, Stage } from "../parts/lifecycle/lifecycle.ts";
import { lifecycle } from "../parts/lifecycle/part.ts";
import { notification } from "../parts/notification/part.ts";
import { actorOf, linkOf, NOW_MS, observedOf, podOf, runOf } from "../run.fixture.ts";
import { type ConditionType, condition, type Finding, findCondition, type RefusedChildren } from "./conditions.ts";
import { desiredStatus } from "./status.ts";

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
interface Facts {
  observed: Observed;
  lifecycle: LifecyclePlan;
  learner: Finding & { available: boolean };
  scale: ScalePlan;
  refused: RefusedChildren;
  actorsRefused?: Finding | undefined;
  generation?: GenerationPlan;
  notification?: NotificationStatus;
  nowMs?: number;
}

export const facts = ({
  stage = "Running" as Stage,
  said = {} as StatusMessage,
  observed = {} as Partial<Observed>,
  ...rest
}: Omit<Partial<Facts>, "observed"> & {
  stage?: Stage;
  said?: StatusMessage;
  observed?: Partial<Observed>;
}): Facts => ({
  observed: observedOf(RUN, {
    actors: [actorOf(RUN, 0)],
    link: linkOf({ phase: Phase.EXECUTING, iteration: 5, ...said }),
    ...observed,
  }),
  lifecycle: { stage, learnerReplicas: 1 },
  learner: CONNECTED,
  scale: SCALE,
  refused: {},
  ...rest,
});
export const statusOf = (change: Parameters<typeof facts>[0]) => statusFrom(facts(change));

/** Returns the status from the reports of the parts, as reconcile.ts does. */
export function statusFrom({
  observed,
  learner,
  refused,
  actorsRefused,
  nowMs = NOW_MS,
  ...rest
}: Facts): TrainingRunStatus {
  const lookOf = (memory: object) => ({ observed, memory, nowMs }) as unknown as Look<never>;
  const done = { ...refused, ...rest } as unknown as Done & Sum;
  const none = { refused: undefined, warning: undefined };
  const silence = { silentSinceMs: new Map(), certificates: new Map(), unusedSinceMs: new Map() };
  const reports = [
    notification.report!(lookOf({ notification: rest.notification }), undefined, done, none),
    lifecycle.report!(lookOf({}), undefined, done, none),
    {
      conditions: [condition("LearnerAvailable", learner.available, learner), ...learningCondition(observed)],
      status: { failures: learnerFailures(observed) },
    },
    actors.report!(lookOf(silence), undefined, done, { ...none, refused: actorsRefused }),
    generators.report!(lookOf(silence), undefined, done, none),
  ];
  return desiredStatus({
    ...{ observed, lifecycle: rest.lifecycle, scale: rest.scale, refused, nowMs },
    conditions: reports.flatMap(({ conditions = [] }) => conditions),
    pieces: Object.assign({}, ...reports.map(({ status }) => status)),
  });
}

export const shown = ({ conditions = [] }: TrainingRunStatus, type: ConditionType) => {
  const { status, reason } = findCondition(conditions, type)!;
  return `${status} ${reason}`;
};
export const unschedulable = podOf(RUN, "actor", {
  conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "no memory" }],
});
