/** The status of a TrainingRun: what was observed, what is being done about it, in fields and conditions. Pure. */
import type {
  ActorsStatus,
  Condition,
  ImagesStatus,
  NotificationStatus,
  ResultsStatus,
  TaskStatus,
  TrainingRunStatus,
} from "../crds/trainingrun.ts";
import type { PhaseName } from "../proto/service.ts";
import { containersOf, podBlocker } from "./blockers.ts";
import {
  clip,
  condition,
  type Finding,
  findCondition,
  isBlocker,
  type NewCondition,
  type Reason,
  type RefusedChildren,
  stamp,
} from "./conditions.ts";
import { COMPONENT, RUN } from "./desired/names.ts";
import { type GenerationFacts, type GenerationPlan, generationFinding, generationStatus } from "./generation.ts";
import { exhaustion, lastWords, learnerFailures } from "./learner-failures.ts";
import type { LearnerState } from "./learner-state.ts";
import type { LearnerStatus, ReportedIteration } from "./learner-status.ts";
import { finalPhase, type LifecyclePlan, type Stage } from "./lifecycle.ts";
import { significant } from "./numbers.ts";
import { isActive, learnerPhase, livingLearner, type Observed, type ObservedActor } from "./observe.ts";
import type { ScalePlan } from "./scale.ts";

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

/** Longest text of a column of kubectl get. */
const DISPLAYED_CHARACTERS = 120;
/** RFC 3339 has four digits for a year. */
const LAST_DATE_MS = Date.UTC(9999, 11, 31);

export function desiredStatus(facts: StatusFacts): TrainingRunStatus {
  const { observed, lifecycle, learner, written, notification, images, results, nowMs } = facts;
  const { run, link } = observed;
  const before = run.status ?? {};
  const now = new Date(Math.floor(nowMs / 1000) * 1000).toISOString().replace(".000Z", "Z");
  const heard = link?.status;
  const began = before.startTime ?? (learner.available ? now : undefined);
  const ended = isOver(lifecycle.stage) ? (before.completionTime ?? now) : undefined;
  const progress = progressOf(run.spec.stopping.iterations, heard, before, nowMs, ended !== undefined);
  const conditions = stamp(conditionsOf(facts), before.conditions ?? [], { generation: run.metadata.generation, now });
  const actors = actorsOf(facts, now);
  const generation = generationStatus(observed, facts.generation);
  const executions = heard?.executions ? countsOf(heard.executions) : before.executions;
  const several = run.spec.tasks.length > 1;
  const tasks = tasksOf(run, heard, before);
  return dropUndefined({
    observedGeneration: run.metadata.generation,
    phase: phaseOf(
      isStopping(facts) ? "Suspending" : lifecycle.stage,
      conditions,
      began,
      learner.available && learnerPhase(link) === "FINAL_EVALUATION",
    ),
    conditions,
    startTime: began,
    completionTime: ended,
    executions: ended && executions ? { ...executions, queued: 0, running: 0 } : executions,
    actors,
    generation,
    checkpoint: heard?.checkpoint ?? written ?? before.checkpoint,
    // A run that was resumed after a failure ends again, and its webhook is posted again.
    notification: ended === undefined ? undefined : (notification ?? before.notification),
    failures: learnerFailures(observed),
    images,
    results,
    evaluation: heard?.evaluation ?? (several ? undefined : before.evaluation),
    ...progress,
    tasks,
    display: {
      ...displayOf(progress, several ? tasks : undefined, actors, run.spec.stopping.iterations),
      ...(generation && { generators: `${generation.ready}/${generation.replicas}` }),
    },
  });
}

function countsOf({ queued, running, completed, lost, disrupted }: NonNullable<LearnerStatus["executions"]>) {
  return { queued, running, completed, lost, ...(disrupted > 0 && { disrupted }) };
}

type Progress = Pick<
  TrainingRunStatus,
  "iteration" | "policyVersion" | "score" | "meanDurationSeconds" | "engineSeconds" | "percent" | "estimatedCompletion"
>;

/** Moves with finished iterations alone, so that nothing is written between them. */
function progressOf(
  iterations: number,
  heard: LearnerStatus | undefined,
  before: TrainingRunStatus,
  nowMs: number,
  ended: boolean,
): Progress {
  const line = heard?.finished;
  if (!line || (line.iteration === before.iteration && before.policyVersion === `${line.lineage}-${line.iteration}`)) {
    const { iteration = 0, policyVersion, score, meanDurationSeconds, engineSeconds, estimatedCompletion } = before;
    return dropUndefined({
      ...{ iteration, policyVersion, score, meanDurationSeconds, engineSeconds },
      percent: percentOf(iteration, iterations),
      estimatedCompletion: ended ? undefined : estimatedCompletion,
    });
  }
  return dropUndefined({
    iteration: line.iteration,
    policyVersion: `${line.lineage}-${line.iteration}`,
    score: dropUndefined({
      ...{ best: line.bestScore, mean: line.meanScore, meanNormalized: line.meanNormalizedScore },
      validFraction: line.validFraction,
    }),
    ...{ meanDurationSeconds: line.meanDurationSeconds, engineSeconds: line.engineSeconds },
    percent: percentOf(line.iteration, iterations),
    estimatedCompletion: ended ? undefined : completionOf(line, iterations, nowMs),
  });
}

/** Each task that something is known of; undefined where there is none. Moves with iterations and evaluations alone. */
function tasksOf(
  { spec }: StatusFacts["observed"]["run"],
  heard: LearnerStatus | undefined,
  before: TrainingRunStatus,
): TaskStatus[] | undefined {
  const tasks = spec.tasks.flatMap(({ name }) => {
    const known = before.tasks?.find((task) => task.name === name);
    const measured = heard?.finished?.tasks.find((task) => task.name === name) ?? known;
    const evaluation = heard?.evaluations.get(name) ?? known?.evaluation;
    return measured || evaluation ? [dropUndefined({ ...measured, name, evaluation })] : [];
  });
  return tasks.length > 0 ? tasks : undefined;
}

/** @returns undefined where the pace is not known, or leads beyond the years that a date has */
function completionOf(
  { elapsedSeconds, iteration }: ReportedIteration,
  iterations: number,
  nowMs: number,
): string | undefined {
  if (elapsedSeconds === undefined) return undefined;
  const leftSeconds = (elapsedSeconds / Math.max(1, iteration)) * Math.max(0, iterations - iteration);
  const atMs = nowMs + leftSeconds * 1000;
  return atMs > LAST_DATE_MS ? undefined : new Date(atMs).toISOString().replace(/\.\d+Z/, "Z");
}

function percentOf(iteration: number, iterations: number): number {
  return Math.min(100, Math.floor((100 * iteration) / iterations));
}

function isOver(stage: Stage): boolean {
  return stage === "Ended" || stage === "Ending";
}

/** No learner is wanted any more, and its pod is still there. */
function isStopping({ observed, lifecycle: { stage } }: StatusFacts): boolean {
  return (stage === "Suspended" || stage === "Queued") && livingLearner(observed) !== undefined;
}

function phaseOf(
  stage: Stage,
  conditions: Condition[],
  began: string | undefined,
  evaluating: boolean,
): TrainingRunStatus["phase"] {
  if (findCondition(conditions, "Succeeded")?.status === "True") return "Succeeded";
  if (findCondition(conditions, "Failed")?.status === "True") return "Failed";
  if (stage === "Suspended") return "Suspended";
  if (began === undefined || stage === "Refused") return "Pending";
  if (stage === "Queued") return "Suspended";
  return stage === "Running" && evaluating ? "Evaluating" : "Running";
}

function actorsOf({ observed, scale, actorsRefused }: StatusFacts, now: string): ActorsStatus {
  const { run, actors, link } = observed;
  const before = run.status?.actors;
  const active = actors.filter(isActive);
  const waiting = active.filter(({ state }) => state === "starting");
  const running = active.length - waiting.length;
  const desired = scale.desired ?? before?.desired;
  const idle = link?.connected
    ? active.filter((actor) => actor.connected && actor.executions === 0).length
    : before?.idle;
  const reason = actorsRefused ?? waitingReason(waiting);
  return dropUndefined({
    desired,
    running,
    idle: Math.min(idle ?? 0, running),
    waiting: waiting.length,
    waitingReason: reason && clip(reason.message),
    replicas: active.length,
    selector: `${COMPONENT}=actor,${RUN}=${run.metadata.name}`,
    lastScaleTime: desired === before?.desired ? before?.lastScaleTime : now,
  });
}

/** Returns why the first actor waits; pods of one kind mostly wait for the same reason. */
function waitingReason(waiting: ObservedActor[]): Finding | undefined {
  if (waiting.some(({ job }) => job.spec?.suspend))
    return { reason: "SchedulingGated", message: "their Jobs are suspended by a queue, which lets them go" };
  for (const { pod } of waiting) {
    const blocker = pod && podBlocker(pod, "actors");
    if (blocker) return blocker;
  }
  return undefined;
}

const shortened = (text: string): string =>
  text.length > DISPLAYED_CHARACTERS ? `${text.slice(0, DISPLAYED_CHARACTERS - 1)}…` : text;

/** @param tasks of a run that has several: their scores have no common unit, so that Best names each and Mean is from 0 to 1 */
function displayOf(
  { iteration, score }: Progress,
  tasks: TaskStatus[] | undefined,
  { running, desired }: ActorsStatus,
  iterations: number,
) {
  const number = (value: number | undefined) => (value === undefined ? undefined : significant(value));
  const best = tasks?.flatMap((task) => (task.best === undefined ? [] : `${task.name}=${significant(task.best)}`));
  return dropUndefined({
    iteration: `${iteration}/${iterations}`,
    best: best && best.length > 0 ? shortened(best.join(" ")) : number(score?.best),
    mean: number(tasks ? score?.meanNormalized : score?.mean),
    valid: score?.validFraction === undefined ? undefined : `${Math.round(score.validFraction * 100)}%`,
    actors: `${running}/${desired ?? 0}`,
  });
}

function conditionsOf(facts: StatusFacts): NewCondition[] {
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
  ];
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
  return is(undefined, "InProgress", "the run goes on");
}

function suspendedCondition(facts: StatusFacts): NewCondition {
  const { observed, lifecycle, written } = facts;
  const before = findCondition(observed.run.status?.conditions, "Suspended");
  if (isStopping(facts))
    return condition("Suspended", false, {
      reason: "Suspending",
      message: `the learner's pod ${livingLearner(observed)!.metadata.name} ends`,
    });
  if (lifecycle.stage === "Suspended") {
    if (before?.reason === "Suspended")
      return condition("Suspended", true, { reason: "Suspended", message: before.message });
    const { iteration } = written ?? observed.run.status?.checkpoint ?? {};
    const message = iteration
      ? `stopped; the volume has the checkpoint of iteration ${iteration}, where a resume goes on`
      : "stopped before the first checkpoint; a resume begins at the start";
    return condition("Suspended", true, { reason: "Suspended", message });
  }
  if (lifecycle.stage === "Queued" && observed.run.status?.startTime !== undefined)
    return condition("Suspended", true, {
      reason: "Evicted",
      message: "stopped until its queue admits it again; it goes on from its newest checkpoint",
    });
  if (lifecycle.stage === "Suspending")
    return condition("Suspended", false, {
      reason: "Suspending",
      message: "actors finish and the learner writes a checkpoint",
    });
  const resumed = ["Suspended", "Suspending", "Evicted", "Resumed"].includes(before?.reason ?? "");
  return resumed && !observed.run.spec.suspend
    ? condition("Suspended", false, { reason: "Resumed", message: "the run goes on from its newest checkpoint" })
    : condition("Suspended", false, { reason: "NotSuspended", message: "spec.suspend is false" });
}

function actorsCondition({ observed, lifecycle, scale, actorsRefused }: StatusFacts): NewCondition {
  const active = observed.actors.filter(isActive);
  const is = (status: boolean | "Unknown", reason: Reason, message: string) =>
    condition("ActorsScaled", status, { reason, message });
  if (["Ended", "Suspended", "Queued"].includes(lifecycle.stage))
    return is(active.length === 0, active.length === 0 ? "NoWork" : "Scaling", "the run needs no actors now");
  if (actorsRefused) return is(false, actorsRefused.reason, `actors cannot be made: ${actorsRefused.message}`);
  const failing = failingActors(observed, scale);
  if (failing) return is(false, "ActorsFailing", failing);
  const waiting = active.filter(({ state }) => state === "starting");
  const blocker = waitingReason(waiting);
  if (blocker) return is(false, blocker.reason, `actors wait: ${blocker.message}`);
  if (scale.desired === undefined)
    return is("Unknown", "LearnerUnavailable", "actors stay as they are until the learner says what there is to do");
  if (scale.desired === 0 && active.length === 0) return is(true, "NoWork", "no execution waits or runs");
  const staying = active.length - scale.drain.length;
  return waiting.length === 0 && staying === scale.desired && scale.create.length === 0
    ? is(true, "AsDesired", "as many actors run as there is work for")
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
};

/** Why the learner says that no result comes, where that is trouble, and since when. */
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
          ? "no actor is asked for (spec.actors)"
          : "see condition ActorsScaled and the pods of actors";
      return `no actor is connected to the learner${since}: ${waiting}; ${why}`;
    }
    case "NoFreeSlots":
      return `actors are connected and take no execution${since}: ${waiting}; see the logs of their supervisors`;
    default:
      return undefined;
  }
}

/** Nothing where the learner does not say, as those of 0.2. */
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

function dropUndefined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, it]) => it !== undefined)) as never;
}
