/**
 * One line of `metrics.jsonl`: everything that an iteration measured, computed once and used by the terminal view,
 * Prometheus and the report alike. Fields are documented in README.md beside this file; their names are stable.
 */

import { ENGINE_USES, type EngineSeconds } from "../../proto/engine-seconds.ts";
import { FAILURE_STEPS } from "../grading/failure-steps.ts";
import { guardNames } from "../grading/guards.ts";
import { reachNames } from "../grading/reaches.ts";
import type { UpdateResult } from "../rl/update.ts";
import { durationHistogram } from "./durations.ts";
import type { MeasuredSample } from "./measured-sample.ts";
import { deviation, mean, share, sum } from "./statistics.ts";
import { counts, countsOf, largest, round, shares } from "./tallies.ts";

/** The parts of the previous line that a new line continues. */
interface Previous {
  noSignalIterations?: number;
  tasks: Readonly<Record<string, { bestScoreSoFar: number | null } | undefined>>;
}

export interface TaskScale {
  name: string;
  /** e.g. `MAE`. */
  metric?: string | undefined;
  direction: "Higher" | "Lower";
  /** Score that counts as 0 and score that counts as 1 when tasks are put on one scale. */
  worst?: number | undefined;
  best?: number | undefined;
}

/** The inputs of a line: the update's results, which enter as they are or as means over steps, and facts of the run. */
export interface IterationInput extends Omit<UpdateResult, "weights"> {
  iteration: number;
  lineage: number;
  tasks: readonly TaskScale[];
  /** The seven markers, in their order. */
  markerNames: readonly string[];
  /** The batch that the update used. */
  trained: readonly MeasuredSample[];
  /**
   * Seconds of each execution that ended since the previous line, whether it is trained on now, waits to be, or was thrown away (then until
   * it was stopped). Every execution of a run is in exactly one line.
   */
  launchedSeconds: readonly number[];
  /** Duration weight of each trained sample; empty if there was no update. */
  durationWeights: readonly number[];
  klCoefficient: number;
  tokensGenerated: number;
  /** Wall-clock seconds that the learner spent in each phase; the rest of `seconds` is called `other`. */
  secondsByPhase: Readonly<Record<string, number>>;
  /** The engine's share of `seconds` by use; absent in lines of earlier versions. */
  engineSeconds?: EngineSeconds | undefined;
  seconds: number;
  /** Seconds since the run began, without interruptions. */
  elapsedSeconds: number;
  /** Growth of the actors' slot-seconds during the iteration. */
  actors: { busySeconds: number; aliveSeconds: number };
  executions: { queued: number; running: number; lost: number; retried: number };
  /** Prompts that were drawn to improve a previous solution, by their result. */
  improvePrompts: { shown: number; noPrevious: number; tooLong: number };
  /** Prompts that were drawn to mend a failed program, by their result. */
  debugPrompts: { shown: number; noFailure: number; tooLong: number };
  /** Instrumentations that verification refused. */
  verificationFailures: number;
  /** The reason for each program that the static policy did not instrument. */
  instrumenterFaults: readonly string[];
  staleDropped: number;
  staleWaited: number;
  /** Samples left out because the rest of their group was lost. */
  groupDropped: number;
  /** Samples left out because their group taught nothing. */
  zeroSignalDropped: number;
  /** Counts of generators' faults, of rows that moved to another generator or could not be checked; absent without generators. */
  generation?: { faults: Record<string, number>; movedRows: number; uncheckedRows: number };
  checkpoint?: { seconds: number; bytes: number } | undefined;
  previous?: Previous | undefined;
  wallTime: Date;
}

export type IterationMetrics = ReturnType<typeof iterationMetrics>;
export type TaskMetrics = ReturnType<typeof taskMetrics>;

/** Computes the line. Pure; counts are of `trained` unless README.md says otherwise. */
export function iterationMetrics(input: IterationInput) {
  const { tasks: scales, markerNames, trained, launchedSeconds, durationWeights, ...rest } = input;
  const { policySteps, criticSteps, actors, checkpoint, previous, wallTime, engineSeconds, ...given } = rest;
  const { seconds, secondsByPhase, elapsedSeconds, tokensGenerated } = given;
  const executed = trained.filter((sample) => sample.outcome !== undefined);
  const valid = trained.filter((sample) => sample.valid);
  const durations = trained.flatMap((sample) => sample.durationSeconds ?? []);
  const lags = trained.map((sample) => sample.lag ?? 0);
  const steps = policySteps.filter((step) => !step.skipped);
  const criticUpdates = criticSteps.filter((step) => !step.skipped);
  const tasks = Object.fromEntries(scales.map((task) => [task.name, taskMetrics(task, trained, previous)]));
  const only = scales.length === 1 ? tasks[scales[0]!.name] : undefined;
  const weightSum = sum(durationWeights);
  const phases = Object.fromEntries(Object.entries(secondsByPhase).map(([name, value]) => [name, round(value)]));
  const other = seconds - sum(Object.values(secondsByPhase));
  if (other > 0.0005) phases.other = round((phases.other ?? 0) + other);
  const tokensTrained = sum(trained.map((sample) => sample.promptTokens.length + sample.responseTokens.length));
  const clampedRewards = valid.filter(({ clamped }) => clamped).length;
  const judged = valid.filter((sample) => sample.verbatim !== undefined);
  return {
    ...given,
    wallTime: wallTime.toISOString(),
    elapsedSeconds: round(elapsedSeconds),
    seconds: round(seconds),
    secondsByPhase: phases,
    ...(engineSeconds && { engineSeconds: roundedEngine(engineSeconds) }),
    noSignalIterations: given.noSignal ? (previous?.noSignalIterations ?? 0) + 1 : 0,
    samples: trained.length,
    executed: executed.length,
    validFraction: share(valid.length, trained.length) ?? 0,
    truncatedFraction: mean(trained.flatMap(({ truncated }) => (truncated === undefined ? [] : Number(truncated)))),
    meanScore: only?.meanScore ?? null,
    bestScore: only?.bestScore ?? null,
    bestScoreSoFar: only?.bestScoreSoFar ?? null,
    meanNormalizedScore: mean(normalizedScores(scales, valid)),
    meanReward: mean(trained.flatMap((sample) => sample.reward ?? [])),
    meanDurationSeconds: mean(durations),
    trainedMeanDurationSeconds: mean(durations),
    weightedMeanDurationSeconds: weightedMean(trained, durationWeights),
    launchedMeanDurationSeconds: mean(launchedSeconds),
    durationHistogram: durationHistogram(launchedSeconds, durations),
    effectiveSampleSize: weightSum > 0 ? weightSum ** 2 / sum(durationWeights.map((weight) => weight ** 2)) : null,
    maxDurationWeight: durationWeights.length > 0 ? largest(durationWeights) : null,
    updateKl: mean(steps.map((step) => step.kl)),
    policyLoss: mean(steps.map((step) => step.loss)),
    ratioMean: mean(steps.map((step) => step.ratioMean)),
    ratioMax: steps.length > 0 ? largest(steps.map((step) => step.ratioMax)) : null,
    clipFraction: mean(steps.map((step) => step.clipFraction)),
    valueLoss: mean(criticUpdates.map((step) => step.loss)),
    explainedVariance: mean(criticUpdates.map((step) => step.explainedVariance)),
    gradientNorm: mean(steps.map((step) => step.gradientNorm)),
    criticGradientNorm: mean(criticUpdates.map((step) => step.gradientNorm)),
    policySteps: policySteps.length,
    skippedSteps: policySteps.length - steps.length + criticSteps.length - criticUpdates.length,
    meanLag: mean(lags) ?? 0,
    maxLag: lags.length > 0 ? largest(lags) : 0,
    outcomes: counts(trained, (sample) => sample.outcome ?? "notExecuted"),
    markers: markerRates(markerNames, executed),
    families: shares(counts(executed, (sample) => sample.family ?? "unknown")),
    instrumenters: counts(executed, (sample) => sample.instrumenter ?? "None"),
    promptKinds: counts(trained, (sample) => sample.kind),
    debugging: countsOf(DEBUG_RESULTS, (result) => trained.filter((it) => debugResultOf(it) === result).length),
    tasks,
    forgedMarkers: sum(trained.map((sample) => sample.forgedMarkers ?? 0)),
    flagged: trained.filter(({ guards = [] }) => guards.length > 0).length,
    guards: countsOf(guardNames, (guard) => trained.filter(({ guards = [] }) => guards.includes(guard)).length),
    reaching: trained.filter(({ reaches = [] }) => reaches.length > 0).length,
    reaches: countsOf(reachNames, (reach) => trained.filter(({ reaches = [] }) => reaches.includes(reach)).length),
    failureSteps: countsOf(FAILURE_STEPS, (step) => trained.filter(({ failureStep }) => failureStep === step).length),
    clampedRewards,
    mostlyClamped: 2 * clampedRewards > valid.length,
    cappedRewards: trained.filter(({ capped }) => capped).length,
    instrumenterFaults: counts(input.instrumenterFaults, (fault) => fault),
    verbatimValidShare: share(judged.filter((sample) => sample.verbatim).length, judged.length),
    generationTokensPerSecond: share(tokensGenerated, engineSeconds?.generating ?? secondsByPhase.generate ?? 0),
    tokensTrained,
    trainingTokensPerSecond: share(tokensTrained, secondsByPhase.train ?? 0),
    learnerIdleShare: share(secondsByPhase.execute ?? 0, seconds),
    actorBusyShare: share(actors.busySeconds, actors.aliveSeconds),
    checkpointSeconds: checkpoint?.seconds ?? null,
    checkpointBytes: checkpoint?.bytes ?? null,
  };
}

/** What became of a failed program that a debug prompt showed. */
export const DEBUG_RESULTS = ["fixed", "notFixed", "broke"] as const;

/** `broke`: the new program came less far than the failed one; undefined for a sample of another prompt. */
function debugResultOf({ kind, valid, failureStep, previousStep }: MeasuredSample) {
  if (kind !== "debug") return undefined;
  if (valid) return "fixed";
  const place = (step: string | undefined) => (FAILURE_STEPS as readonly (string | undefined)[]).indexOf(step);
  return place(failureStep) < place(previousStep) ? "broke" : "notFixed";
}

function taskMetrics(task: TaskScale, trained: readonly MeasuredSample[], previous: Previous | undefined) {
  const own = trained.filter((sample) => sample.task === task.name);
  const valid = own.filter((sample) => sample.valid);
  const scores = valid.flatMap((sample) => sample.score ?? []);
  const bestScore = bestOf(scores, task.direction);
  const before = previous?.tasks[task.name]?.bestScoreSoFar ?? null;
  return {
    ...(task.metric !== undefined && { metric: task.metric }),
    direction: task.direction,
    samples: own.length,
    validFraction: share(valid.length, own.length) ?? 0,
    meanReward: mean(own.flatMap((sample) => sample.reward ?? [])),
    rewardDeviation: deviation(own.flatMap((sample) => sample.reward ?? [])),
    meanDurationSeconds: mean(own.flatMap((sample) => sample.durationSeconds ?? [])),
    meanScore: mean(scores),
    meanNormalizedScore: mean(normalizedScores([task], valid)),
    bestScore,
    bestScoreSoFar: bestOf(
      [before, bestScore].flatMap((score) => score ?? []),
      task.direction,
    ),
  };
}

/** Scores between `worst` (0) and `best` (1) of their task, clipped; tasks that state no range are left out. */
function normalizedScores(tasks: readonly TaskScale[], valid: readonly MeasuredSample[]): number[] {
  const scales = new Map(tasks.map((task) => [task.name, task]));
  return valid.flatMap(({ task, score }) => normalizedScore(score, scales.get(task) ?? {}) ?? []);
}

/** A score between `worst` (0) and `best` (1), clipped; undefined without a score or a range. */
export function normalizedScore(
  score: number | undefined,
  { worst, best }: Pick<TaskScale, "worst" | "best">,
): number | undefined {
  if (worst === undefined || best === undefined || worst === best || score === undefined) return undefined;
  return Math.min(1, Math.max(0, (score - worst) / (best - worst)));
}

function markerRates(names: readonly string[], executed: readonly MeasuredSample[]): Record<string, number> {
  const reached = (name: string) => executed.filter((sample) => sample.markers?.some((marker) => marker.name === name));
  return Object.fromEntries(names.map((name) => [name, share(reached(name).length, executed.length) ?? 0]));
}

/** Mean duration as the policy gradient counts it; samples without an execution carry no duration and are left out. */
function weightedMean(trained: readonly MeasuredSample[], weights: readonly number[]): number | null {
  let total = 0;
  let weightTotal = 0;
  trained.forEach((sample, index) => {
    const weight = weights[index];
    if (weight === undefined || sample.durationSeconds === undefined) return;
    total += weight * sample.durationSeconds;
    weightTotal += weight;
  });
  return share(total, weightTotal);
}

function bestOf(scores: readonly number[], direction: TaskScale["direction"]): number | null {
  if (scores.length === 0) return null;
  return direction === "Higher" ? largest(scores) : -largest(scores.map((score) => -score));
}

function roundedEngine(seconds: EngineSeconds): EngineSeconds {
  return Object.fromEntries(ENGINE_USES.map((use) => [use, round(seconds[use])])) as Record<
    keyof EngineSeconds,
    number
  >;
}
