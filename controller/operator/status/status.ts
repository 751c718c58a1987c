/** Computes the status of a TrainingRun from its conditions and its parts' pieces. Pure. */
import type { ActorsStatus, Condition, TaskStatus, TrainingRunStatus } from "../../../crds/trainingrun.ts";
import type { PhaseName } from "../../../proto/service.ts";
import { significant } from "../../numbers.ts";
import { learnerPhase } from "../observe.ts";
import type { LearnerStatus, ReportedIteration } from "../parts/learner/learner-status.ts";
import { isStopping } from "../parts/lifecycle/conditions.ts";
import { isOver, type Stage } from "../parts/lifecycle/lifecycle.ts";
import { findCondition, stamp } from "./conditions.ts";
import { type ConditionsFacts, conditionsOf } from "./status-conditions.ts";
import { dropUndefined, timeOf } from "./values.ts";

/** Longest text of a column of kubectl get. */
const DISPLAYED_CHARACTERS = 120;
/** RFC 3339 has four digits for a year. */
const LAST_DATE_MS = Date.UTC(9999, 11, 31);

export interface StatusFacts extends ConditionsFacts {
  /** The pieces of all parts. */
  pieces: Partial<TrainingRunStatus>;
}

export function desiredStatus(facts: StatusFacts): TrainingRunStatus {
  const { observed, lifecycle, pieces, nowMs } = facts;
  const { run, link } = observed;
  const before = run.status ?? {};
  const now = timeOf(nowMs);
  const heard = link?.status;
  const conditions = stamp(conditionsOf(facts), before.conditions ?? [], { generation: run.metadata.generation, now });
  const isAvailable = findCondition(conditions, "LearnerAvailable")!.status === "True";
  const began = before.startTime ?? (isAvailable ? now : undefined);
  const ended = isOver(lifecycle.stage) ? (before.completionTime ?? now) : undefined;
  const progress = progressOf(run.spec.stopping.iterations, heard, before, nowMs, ended !== undefined);
  const executions = heard?.executions ? countsOf(heard.executions) : before.executions;
  const several = run.spec.tasks.length > 1;
  const tasks = tasksOf(run, heard, before);
  const { actors, generation } = pieces;
  const doing = isAvailable ? learnerPhase(link) : undefined;
  return dropUndefined({
    observedGeneration: run.metadata.generation,
    phase: phaseOf(isStopping(facts) ? "Suspending" : lifecycle.stage, conditions, began, doing),
    conditions,
    startTime: began,
    completionTime: ended,
    executions: ended && executions ? { ...executions, queued: 0, running: 0 } : executions,
    evaluation: heard?.evaluation ?? (several ? undefined : before.evaluation),
    ...progress,
    tasks,
    ...pieces,
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

/** Changes only with finished iterations, so that nothing is written between them. */
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
      iteration,
      policyVersion,
      score,
      meanDurationSeconds,
      engineSeconds,
      percent: percentOf(iteration, iterations),
      estimatedCompletion: ended ? undefined : estimatedCompletion,
    });
  }
  return dropUndefined({
    iteration: line.iteration,
    policyVersion: `${line.lineage}-${line.iteration}`,
    score: dropUndefined({
      best: line.bestScore,
      mean: line.meanScore,
      meanNormalized: line.meanNormalizedScore,
      validFraction: line.validFraction,
    }),
    meanDurationSeconds: line.meanDurationSeconds,
    engineSeconds: line.engineSeconds,
    percent: percentOf(line.iteration, iterations),
    estimatedCompletion: ended ? undefined : completionOf(line, iterations, nowMs),
  });
}

/** Returns the tasks with results; undefined if there are none. Changes only with iterations and evaluations. */
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

/** @returns undefined if the pace is unknown, or if the end is after the year 9999 */
function completionOf(
  { elapsedSeconds, iteration }: ReportedIteration,
  iterations: number,
  nowMs: number,
): string | undefined {
  if (elapsedSeconds === undefined) return undefined;
  const leftSeconds = (elapsedSeconds / Math.max(1, iteration)) * Math.max(0, iterations - iteration);
  const atMs = nowMs + leftSeconds * 1000;
  return atMs > LAST_DATE_MS ? undefined : timeOf(atMs);
}

function percentOf(iteration: number, iterations: number): number {
  return Math.min(100, Math.floor((100 * iteration) / iterations));
}

function phaseOf(
  stage: Stage,
  conditions: Condition[],
  began: string | undefined,
  doing: PhaseName | undefined,
): TrainingRunStatus["phase"] {
  if (findCondition(conditions, "Succeeded")?.status === "True") return "Succeeded";
  if (findCondition(conditions, "Failed")?.status === "True") return "Failed";
  if (stage === "Suspended") return "Suspended";
  if (began === undefined || stage === "Refused") return "Pending";
  if (stage === "Queued") return "Suspended";
  if (stage !== "Running") return "Running";
  if (doing === "WARMING_UP") return "WarmingUp";
  return doing === "FINAL_EVALUATION" ? "Evaluating" : "Running";
}

const shortened = (text: string): string =>
  text.length > DISPLAYED_CHARACTERS ? `${text.slice(0, DISPLAYED_CHARACTERS - 1)}…` : text;

/** @param tasks of a run that has several: their scores have no common unit, so that Best names each and Mean is from 0 to 1 */
function displayOf(
  { iteration, score }: Progress,
  tasks: TaskStatus[] | undefined,
  { running = 0, desired = 0 }: ActorsStatus = {},
  iterations: number,
) {
  const number = (value: number | undefined) => (value === undefined ? undefined : significant(value));
  const best = tasks?.flatMap((task) => (task.best === undefined ? [] : `${task.name}=${significant(task.best)}`));
  return dropUndefined({
    iteration: `${iteration}/${iterations}`,
    best: best && best.length > 0 ? shortened(best.join(" ")) : number(score?.best),
    mean: number(tasks ? score?.meanNormalized : score?.mean),
    valid: score?.validFraction === undefined ? undefined : `${Math.round(score.validFraction * 100)}%`,
    actors: `${running}/${desired}`,
  });
}
