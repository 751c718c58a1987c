/**
 * One line of `metrics.jsonl`: everything that an iteration measured, computed once and used by the terminal view,
 * Prometheus and the report alike. Fields are documented in README.md beside this file; their names are stable.
 */

import type { CriticStepResult, PolicyStepResult } from "../engine/engine.ts";
import { type Guard, guardNames } from "../grading/guards.ts";
import { addDuration, type DurationHistogram, emptyHistogram } from "./durations.ts";

/** What the metrics read of a sample; `measuredSample` makes it from the store's. */
export interface MeasuredSample {
  task: string;
  kind: "scratch" | "improve";
  instrumenter?: string | undefined;
  /** Absent if the solution was never executed (no plan, no code block). */
  outcome?: string | undefined;
  /** Seconds that the program ran; of an execution that was given up, the seconds until then. */
  durationSeconds?: number | undefined;
  markers?: readonly { name: string }[] | undefined;
  forgedMarkers?: number | undefined;
  valid: boolean;
  score?: number | undefined;
  reward?: number | undefined;
  /** Guards that flagged its submission; absent if none did. */
  guards?: readonly string[] | undefined;
  /** The reward was raised to the grader's `rewardFloor`. */
  clamped?: boolean | undefined;
  /** A guard lowered the reward to the task's `guardedRewardCap`. */
  capped?: boolean | undefined;
  /** Kind of model that the program fits, e.g. `gradient boosting`. */
  family?: string | undefined;
  /** The iterations between dispatch and training. */
  lag?: number | undefined;
  /** Whether the program stands word for word in the pretraining corpus; absent if the corpus is not known. */
  verbatim?: boolean | undefined;
  promptTokens: { readonly length: number };
  responseTokens: { readonly length: number };
  /** Whether the response was cut at `model.maxResponseTokens`; absent if that is not known. */
  truncated?: boolean | undefined;
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

export interface IterationInput {
  iteration: number;
  lineage: number;
  tasks: readonly TaskScale[];
  /** The seven, in their order. */
  markerNames: readonly string[];
  /** The batch that the update used. */
  trained: readonly MeasuredSample[];
  /**
   * Seconds that each execution ran that ended since the previous line, whatever became of it: trained now, waiting
   * to be, or thrown away (then until it was stopped). Every execution of a run is in exactly one line.
   */
  launchedSeconds: readonly number[];
  /** Duration weight of each trained sample; empty if there was no update. */
  durationWeights: readonly number[];
  /** Mean over response tokens of log pi_old - log pi_reference, before the update. */
  kl: number;
  klCoefficient: number;
  /** Mean token entropy before the update, nats. */
  entropy: number;
  /** Largest |exp(proximal - behaviour) - 1| over the tokens of samples with lag 0; null if there are none. */
  importanceMaxDeviation: number | null;
  /** It is above the limit of the warning. Default false. */
  importanceDeviates?: boolean;
  /** Mean over the response tokens of the importance weight, after the cap. */
  importanceMean: number;
  /** Share of the response tokens whose importance weight the cap cut. */
  importanceCappedShare: number;
  /** Of the policy's steps; null if it was not trained. */
  learningRate: number | null;
  criticLearningRate: number | null;
  policySteps: readonly PolicyStepResult[];
  criticSteps: readonly CriticStepResult[];
  tokensGenerated: number;
  /** Wall-clock seconds that the learner spent in each phase; the rest of `seconds` is called `other`. */
  secondsByPhase: Readonly<Record<string, number>>;
  seconds: number;
  /** Since the run began, interruptions left out. */
  elapsedSeconds: number;
  /** Growth of the actors' slot-seconds during the iteration. */
  actors: { busySeconds: number; aliveSeconds: number };
  executions: { queued: number; running: number; lost: number; retried: number };
  /** Instrumentations that verification refused. */
  verificationFailures: number;
  /** Why the static policy did not instrument, of each program where it did not. */
  instrumenterFaults: readonly string[];
  staleDropped: number;
  staleWaited: number;
  /** Share of the groups whose members all have the same reward; null without groups. */
  zeroSpreadShare: number | null;
  /** All samples were alike in reward and score: the policy was left as it is. */
  noSignal: boolean;
  /** Samples left out because the rest of their group was lost. */
  groupDropped: number;
  checkpoint?: { seconds: number; bytes: number } | undefined;
  previous?: IterationMetrics | undefined;
  wallTime: Date;
}

export interface TaskMetrics {
  /** Absent if the caller did not say. */
  metric?: string;
  direction: "Higher" | "Lower";
  samples: number;
  validFraction: number;
  meanScore: number | null;
  bestScore: number | null;
  bestScoreSoFar: number | null;
}

export interface IterationMetrics {
  iteration: number;
  lineage: number;
  wallTime: string;
  elapsedSeconds: number;
  seconds: number;
  secondsByPhase: Record<string, number>;
  samples: number;
  executed: number;
  validFraction: number;
  truncatedFraction: number | null;
  meanScore: number | null;
  bestScore: number | null;
  bestScoreSoFar: number | null;
  meanNormalizedScore: number | null;
  meanReward: number | null;
  meanDurationSeconds: number | null;
  trainedMeanDurationSeconds: number | null;
  weightedMeanDurationSeconds: number | null;
  launchedMeanDurationSeconds: number | null;
  durationHistogram: DurationHistogram;
  effectiveSampleSize: number | null;
  maxDurationWeight: number | null;
  kl: number;
  klCoefficient: number;
  updateKl: number | null;
  entropy: number;
  learningRate: number | null;
  criticLearningRate: number | null;
  policyLoss: number | null;
  ratioMean: number | null;
  ratioMax: number | null;
  clipFraction: number | null;
  importanceMaxDeviation: number | null;
  importanceDeviates: boolean;
  importanceMean: number;
  importanceCappedShare: number;
  valueLoss: number | null;
  explainedVariance: number | null;
  gradientNorm: number | null;
  criticGradientNorm: number | null;
  policySteps: number;
  skippedSteps: number;
  meanLag: number;
  maxLag: number;
  staleDropped: number;
  staleWaited: number;
  zeroSpreadShare: number | null;
  noSignal: boolean;
  groupDropped: number;
  outcomes: Record<string, number>;
  markers: Record<string, number>;
  families: Record<string, number>;
  instrumenters: Record<string, number>;
  promptKinds: Record<string, number>;
  tasks: Record<string, TaskMetrics>;
  forgedMarkers: number;
  flagged: number;
  guards: Record<Guard, number>;
  clampedRewards: number;
  cappedRewards: number;
  verificationFailures: number;
  instrumenterFaults: Record<string, number>;
  verbatimValidShare: number | null;
  executions: { queued: number; running: number; lost: number; retried: number };
  tokensGenerated: number;
  generationTokensPerSecond: number | null;
  tokensTrained: number;
  trainingTokensPerSecond: number | null;
  learnerIdleShare: number | null;
  actorBusyShare: number | null;
  checkpointSeconds: number | null;
  checkpointBytes: number | null;
}

/** Computes the line. Pure; counts are of `trained` unless the field says otherwise. */
export function iterationMetrics(input: IterationInput): IterationMetrics {
  const { trained, launchedSeconds, durationWeights: weights, policySteps, criticSteps, previous } = input;
  const executed = trained.filter((sample) => sample.outcome !== undefined);
  const valid = trained.filter((sample) => sample.valid);
  const durations = seconds(trained);
  const lags = trained.map((sample) => sample.lag ?? 0);
  const steps = policySteps.filter((step) => !step.skipped);
  const criticUpdates = criticSteps.filter((step) => !step.skipped);
  const tasks = Object.fromEntries(input.tasks.map((task) => [task.name, taskMetrics(task, trained, previous)]));
  const only = input.tasks.length === 1 ? tasks[input.tasks[0]!.name] : undefined;
  const weightSum = sum(weights);
  const histogram = emptyHistogram();
  for (const value of launchedSeconds) addDuration(histogram.launched, value);
  for (const value of durations) addDuration(histogram.trained, value);
  const phases = Object.fromEntries(Object.entries(input.secondsByPhase).map(([name, value]) => [name, round(value)]));
  const other = input.seconds - sum(Object.values(input.secondsByPhase));
  if (other > 0.0005) phases.other = round((phases.other ?? 0) + other);
  const tokensTrained = sum(trained.map((sample) => sample.promptTokens.length + sample.responseTokens.length));
  const judged = valid.filter((sample) => sample.verbatim !== undefined);
  return {
    iteration: input.iteration,
    lineage: input.lineage,
    wallTime: input.wallTime.toISOString(),
    elapsedSeconds: round(input.elapsedSeconds),
    seconds: round(input.seconds),
    secondsByPhase: phases,
    samples: trained.length,
    executed: executed.length,
    validFraction: share(valid.length, trained.length) ?? 0,
    truncatedFraction: mean(trained.flatMap(({ truncated }) => (truncated === undefined ? [] : Number(truncated)))),
    meanScore: only?.meanScore ?? null,
    bestScore: only?.bestScore ?? null,
    bestScoreSoFar: only?.bestScoreSoFar ?? null,
    meanNormalizedScore: mean(normalizedScores(input.tasks, valid)),
    meanReward: mean(trained.flatMap((sample) => sample.reward ?? [])),
    meanDurationSeconds: mean(durations),
    trainedMeanDurationSeconds: mean(durations),
    weightedMeanDurationSeconds: weightedMean(trained, weights),
    launchedMeanDurationSeconds: mean(launchedSeconds),
    durationHistogram: histogram,
    effectiveSampleSize: weightSum > 0 ? weightSum ** 2 / sum(weights.map((weight) => weight ** 2)) : null,
    maxDurationWeight: weights.length > 0 ? largest(weights) : null,
    kl: input.kl,
    klCoefficient: input.klCoefficient,
    updateKl: mean(steps.map((step) => step.kl)),
    entropy: input.entropy,
    learningRate: input.learningRate,
    criticLearningRate: input.criticLearningRate,
    policyLoss: mean(steps.map((step) => step.loss)),
    ratioMean: mean(steps.map((step) => step.ratioMean)),
    ratioMax: steps.length > 0 ? largest(steps.map((step) => step.ratioMax)) : null,
    clipFraction: mean(steps.map((step) => step.clipFraction)),
    importanceMaxDeviation: input.importanceMaxDeviation,
    importanceDeviates: input.importanceDeviates ?? false,
    importanceMean: input.importanceMean,
    importanceCappedShare: input.importanceCappedShare,
    valueLoss: mean(criticUpdates.map((step) => step.loss)),
    explainedVariance: mean(criticUpdates.map((step) => step.explainedVariance)),
    gradientNorm: mean(steps.map((step) => step.gradientNorm)),
    criticGradientNorm: mean(criticUpdates.map((step) => step.gradientNorm)),
    policySteps: policySteps.length,
    skippedSteps: policySteps.length - steps.length + criticSteps.length - criticUpdates.length,
    meanLag: mean(lags) ?? 0,
    maxLag: lags.length > 0 ? largest(lags) : 0,
    staleDropped: input.staleDropped,
    staleWaited: input.staleWaited,
    zeroSpreadShare: input.zeroSpreadShare,
    noSignal: input.noSignal,
    groupDropped: input.groupDropped,
    outcomes: counts(trained, (sample) => sample.outcome ?? "notExecuted"),
    markers: markerRates(input.markerNames, executed),
    families: shares(counts(executed, (sample) => sample.family ?? "unknown")),
    instrumenters: counts(executed, (sample) => sample.instrumenter ?? "None"),
    promptKinds: counts(trained, (sample) => sample.kind),
    tasks,
    forgedMarkers: sum(trained.map((sample) => sample.forgedMarkers ?? 0)),
    flagged: trained.filter(({ guards = [] }) => guards.length > 0).length,
    guards: guardCounts(trained),
    clampedRewards: trained.filter(({ clamped }) => clamped).length,
    cappedRewards: trained.filter(({ capped }) => capped).length,
    verificationFailures: input.verificationFailures,
    instrumenterFaults: counts(input.instrumenterFaults, (fault) => fault),
    verbatimValidShare: share(judged.filter((sample) => sample.verbatim).length, judged.length),
    executions: input.executions,
    tokensGenerated: input.tokensGenerated,
    generationTokensPerSecond: share(input.tokensGenerated, input.secondsByPhase.generate ?? 0),
    tokensTrained,
    trainingTokensPerSecond: share(tokensTrained, input.secondsByPhase.train ?? 0),
    learnerIdleShare: share(input.secondsByPhase.execute ?? 0, input.seconds),
    actorBusyShare: share(input.actors.busySeconds, input.actors.aliveSeconds),
    checkpointSeconds: input.checkpoint?.seconds ?? null,
    checkpointBytes: input.checkpoint?.bytes ?? null,
  };
}

function taskMetrics(
  task: TaskScale,
  trained: readonly MeasuredSample[],
  previous: IterationMetrics | undefined,
): TaskMetrics {
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
    meanScore: mean(scores),
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

/** Every guard has a count, 0 too: a line of metrics always has the same fields. */
function guardCounts(trained: readonly MeasuredSample[]): Record<Guard, number> {
  const flaggedBy = (guard: Guard) => trained.filter(({ guards = [] }) => guards.includes(guard)).length;
  return Object.fromEntries(guardNames.map((guard) => [guard, flaggedBy(guard)])) as Record<Guard, number>;
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

function seconds(samples: readonly MeasuredSample[]): number[] {
  return samples.flatMap((sample) => sample.durationSeconds ?? []);
}

function counts<Item>(items: readonly Item[], key: (item: Item) => string): Record<string, number> {
  const result: Record<string, number> = {};
  for (const item of items) result[key(item)] = (result[key(item)] ?? 0) + 1;
  return result;
}

function shares(from: Record<string, number>): Record<string, number> {
  const total = sum(Object.values(from));
  return Object.fromEntries(Object.entries(from).map(([key, count]) => [key, count / total]));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function mean(values: readonly number[]): number | null {
  return share(sum(values), values.length);
}

function share(part: number, whole: number): number | null {
  return whole > 0 ? part / whole : null;
}

function largest(values: readonly number[]): number {
  return values.reduce((highest, value) => Math.max(highest, value), Number.NEGATIVE_INFINITY);
}

/** Seconds to the millisecond: finer digits are noise and make the lines hard to read. */
function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
