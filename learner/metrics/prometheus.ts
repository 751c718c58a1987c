/**
 * The numbers of `metrics.jsonl` and the numbers that change between its lines, for Prometheus. Base units (seconds, bytes,
 * shares from 0 to 1); labels have few values, and none names a sample or an attempt.
 */
import { Counter, Gauge, Histogram } from "prom-client";
import { ENGINE_USES } from "../../proto/engine-seconds.ts";
import { OUTCOMES } from "../../proto/execution.ts";
import { FAILURE_STEPS } from "../grading/failure-steps.ts";
import { type Guard, guardNames } from "../grading/guards.ts";
import type { KnownActor } from "../server/actor-states.ts";
import { DEBUG_RESULTS, type IterationMetrics } from "./iteration.ts";
import { registryOfProcess } from "./registry.ts";
import { sum } from "./statistics.ts";
import { type Evaluation, type EvaluationSummary, evaluationsOf, type WarmStartSummary } from "./summary.ts";

/** Stages of a sample; each is timed separately. */
type SampleStage = "queue" | "instrument" | "execute" | "grade";

/** `disrupted`: attempts that ended because their actor was taken away. */
const EXECUTION_EVENTS = ["completed", "lost", "retried", "disrupted"] as const;

/** Executions now by state, and events since the run began. */
type ExecutionCounts = Record<"queued" | "running" | (typeof EXECUTION_EVENTS)[number], number>;

/** The part of LearnerStatus about generators. */
interface GenerationStatus {
  waitingPrompts: number;
  generators: readonly { ready: boolean; running: number }[];
}

type Value = (line: IterationMetrics) => number | null;

/** One gauge per number: name, meaning, value in the line. */
const GAUGES: readonly [string, string, Value][] = [
  ["iteration", "Newest finished iteration", (line) => line.iteration],
  ["iteration_seconds", "Wall-clock seconds of the newest iteration", (line) => line.seconds],
  ["batch_samples", "Samples of the newest batch", (line) => line.samples],
  ["valid_ratio", "Share of the batch whose submission was graded", (line) => line.validFraction],
  ["truncated_ratio", "Share of the batch cut at maxResponseTokens", (line) => line.truncatedFraction ?? null],
  ["score_normalized_mean", "Mean score, 0 worst to 1 best of the task's range", (line) => line.meanNormalizedScore],
  ["reward_mean", "Mean reward of the batch", (line) => line.meanReward],
  ["duration_trained_mean_seconds", "Mean duration of the programs trained on", (line) => line.meanDurationSeconds],
  ["duration_weighted_mean_seconds", "The same, by duration weights", (line) => line.weightedMeanDurationSeconds],
  ["duration_launched_mean_seconds", "Mean duration of ended executions", (line) => line.launchedMeanDurationSeconds],
  ["effective_sample_size", "Effective sample size of the duration weights", (line) => line.effectiveSampleSize],
  ["duration_weight_max", "Largest duration weight of the batch", (line) => line.maxDurationWeight],
  ["policy_kl", "KL estimate to the frozen reference, nats a token; can be negative", (line) => line.kl],
  ["learning_rate", "Learning rate of the policy", (line) => line.learningRate],
  ["critic_learning_rate", "Learning rate of the critic", (line) => line.criticLearningRate],
  ["policy_kl_coefficient", "Weight of the KL penalty", (line) => line.klCoefficient],
  ["policy_entropy", "Entropy, nats a token", (line) => line.entropy],
  ["policy_ratio_mean", "Mean probability ratio of the update", (line) => line.ratioMean],
  ["policy_ratio_max", "Largest probability ratio of the update", (line) => line.ratioMax],
  ["policy_clip_ratio", "Share of tokens whose ratio was clipped", (line) => line.clipFraction],
  ["policy_gradient_norm", "Global gradient norm before clipping", (line) => line.gradientNorm],
  ["importance_max_deviation", "Generation against training path at lag 0", (line) => line.importanceMaxDeviation],
  ["importance_mean_ratio", "Mean importance weight, after the cap", (line) => line.importanceMean],
  ["importance_capped_ratio", "Share of tokens whose importance weight was cut", (line) => line.importanceCappedShare],
  ["value_loss", "Loss of the critic", (line) => line.valueLoss],
  ["value_explained_variance", "Share of the returns that the critic explains", (line) => line.explainedVariance],
  ["value_gradient_norm", "Global gradient norm of the critic before clipping", (line) => line.criticGradientNorm],
  ["lag_mean_iterations", "Mean iterations between dispatch and training", (line) => line.meanLag],
  ["lag_max_iterations", "Largest lag of the batch", (line) => line.maxLag],
  ["group_zero_spread_ratio", "Share of groups whose rewards are all the same", (line) => line.zeroSpreadShare],
  [
    "no_signal_iterations",
    "Iterations in a row whose rewards were all alike",
    (line) => line.noSignalIterations ?? null,
  ],
  ["verbatim_valid_ratio", "Valid programs found in the pretraining corpus", (line) => line.verbatimValidShare],
  ["generation_tokens_per_second", "Tokens sampled a second", (line) => line.generationTokensPerSecond],
  ["training_tokens_per_second", "Tokens trained a second", (line) => line.trainingTokensPerSecond],
  ["learner_idle_ratio", "Share of the iteration that the learner waited", (line) => line.learnerIdleShare],
  ["actor_busy_ratio", "Share of slot-seconds that executed a program", (line) => line.actorBusyShare],
  ["checkpoint_seconds", "Seconds to write the newest checkpoint", (line) => line.checkpointSeconds],
  ["checkpoint_bytes", "Size of the newest checkpoint", (line) => line.checkpointBytes],
];

/** One gauge per number of a task's newest evaluation: name, meaning, value. */
const EVALUATED: readonly [string, string, (policy: EvaluationSummary) => number | null][] = [
  ["evaluation_iteration", "Iterations of the policy that was evaluated last", (policy) => policy.iteration],
  ["evaluation_valid_ratio", "Share of its programs whose submission was graded", (policy) => policy.validFraction],
  ["evaluation_score_mean", "Mean score of its valid programs", (policy) => policy.meanScore],
  ["evaluation_score_normalized_mean", "The same, 0 worst to 1 best", (policy) => policy.meanNormalizedScore],
  ["evaluation_score_best", "Best score of its programs", (policy) => policy.bestScore],
];

/** One gauge per number of the warm start: name, meaning, value. */
const WARM_START: readonly [string, string, (warmStart: WarmStartSummary) => number | null][] = [
  ["warm_start_steps", "Optimiser steps of the warm start", (warmStart) => warmStart.taken],
  ["warm_start_loss", "Mean cross-entropy of its newest batch, nats a token", (warmStart) => warmStart.loss],
  ["warm_start_held_out_loss", "The same of held-out examples", (warmStart) => warmStart.newest?.loss ?? null],
  [
    "warm_start_accuracy_ratio",
    "Held-out tokens that are most probable",
    (warmStart) => warmStart.newest?.accuracy ?? null,
  ],
];

/** Every outcome has a value, 0 too. */
const NONE = Object.fromEntries([...OUTCOMES, "notExecuted"].map((outcome) => [outcome, 0]));

/** One gauge per record of the line: name, meaning, label, value. */
const LABELLED: readonly [string, string, string, (line: IterationMetrics) => Record<string, number | null>][] = [
  ["outcome_ratio", "Share of the newest batch by outcome", "outcome", (line) => shares({ ...NONE, ...line.outcomes })],
  ["iteration_phase_seconds", "Seconds of the newest iteration by phase", "phase", (line) => line.secondsByPhase],
  ["iteration_engine_seconds", "Seconds of the newest iteration by engine activity", "use", engineSecondsOf],
  ["marker_ratio", "Share of executed programs that reached a marker", "marker", (line) => line.markers],
  ["family_ratio", "Share of executed programs by kind of model", "family", (line) => line.families],
  ["score_mean", "Mean score of the valid programs", "task", (line) => perTask(line, (task) => task.meanScore)],
  ["score_best", "Best score so far", "task", (line) => perTask(line, (task) => task.bestScoreSoFar)],
  ["task_samples", "Samples of the newest batch by task", "task", (line) => perTask(line, (task) => task.samples)],
  ["task_valid_ratio", "Share of them that was graded", "task", (line) => perTask(line, (task) => task.validFraction)],
  ["task_reward_mean", "Their mean reward", "task", (line) => perTask(line, (task) => task.meanReward ?? null)],
  [
    "task_reward_deviation",
    "Standard deviation of their rewards",
    "task",
    (line) => perTask(line, (task) => task.rewardDeviation ?? null),
  ],
  [
    "task_score_normalized_mean",
    "Their mean score, 0 worst to 1 best of the task's range",
    "task",
    (line) => perTask(line, (task) => task.meanNormalizedScore ?? null),
  ],
];

/** One counter per count of the line: name, meaning, growth by label value. */
const COUNTERS: readonly [string, string, string | undefined, (line: IterationMetrics) => Record<string, number>][] = [
  ["samples_total", "Samples trained on, by outcome", "outcome", (line) => line.outcomes],
  ["prompts_total", "Samples trained on, by kind of prompt", "kind", (line) => line.promptKinds],
  ["improve_prompts_total", "Prompts drawn to improve a program, by result", "result", improvePromptsOf],
  [
    "debug_prompts_total",
    "Prompts drawn to mend a failed program, by result",
    "result",
    (l) => ({ ...l.debugPrompts }),
  ],
  ["debugging_total", "Samples of debug prompts trained on, by what became of the program", "debugging", debuggingOf],
  ["failures_total", "Samples trained on without a valid submission, by how far they came", "step", failureStepsOf],
  ["instrumented_total", "Programs by the instrumenter that was used", "instrumenter", (line) => line.instrumenters],
  ["phase_seconds_total", "Wall-clock seconds by phase", "phase", (line) => line.secondsByPhase],
  ["learner_engine_seconds_total", "Seconds by engine activity, or reason to idle", "use", engineSecondsOf],
  ["tokens_generated_total", "Tokens sampled", undefined, (line) => ({ "": line.tokensGenerated })],
  ["tokens_trained_total", "Tokens trained on", undefined, (line) => ({ "": line.tokensTrained })],
  ["skipped_steps_total", "Updates skipped for a gradient not finite", undefined, (l) => ({ "": l.skippedSteps })],
  ["forged_markers_total", "Marker lines that were not genuine", undefined, (line) => ({ "": line.forgedMarkers })],
  ["instrumenter_faults_total", "Programs left to Syntax, by reason", "reason", (line) => line.instrumenterFaults],
  ["verification_failures_total", "Refused instrumentations", undefined, (l) => ({ "": l.verificationFailures })],
  ["stale_dropped_total", "Samples past the staleness bound", undefined, (line) => ({ "": line.staleDropped })],
  ["group_dropped_total", "Samples whose group was lost", undefined, (line) => ({ "": line.groupDropped })],
  [
    "zero_signal_dropped_total",
    "Samples whose group taught nothing",
    undefined,
    (l) => ({ "": l.zeroSignalDropped ?? 0 }),
  ],
  ["generator_faults_total", "Times a generator was not used, by reason", "fault", (l) => l.generation?.faults ?? {}],
  ["generator_moved_rows_total", "Rows that went to another generator", undefined, (l) => moved(l, "movedRows")],
  ["generator_unchecked_rows_total", "Rows not compared for lag", undefined, (l) => moved(l, "uncheckedRows")],
  ["stale_waited_total", "Executions that a full batch waited for", undefined, (line) => ({ "": line.staleWaited })],
];

const moved = ({ generation }: IterationMetrics, name: "movedRows" | "uncheckedRows") => ({
  "": generation?.[name] ?? 0,
});

/** Label values that begin at 0, because a rate cannot see a counter's first step otherwise. */
const KNOWN_VALUES: Record<string, readonly string[]> = {
  samples_total: Object.keys(NONE),
  prompts_total: ["scratch", "improve", "debug"],
  improve_prompts_total: ["shown", "noPrevious", "tooLong"],
  debug_prompts_total: ["shown", "noFailure", "tooLong"],
  debugging_total: DEBUG_RESULTS,
  failures_total: FAILURE_STEPS,
  generator_faults_total: ["lost", "oldVersion", "logProbs"],
  learner_engine_seconds_total: ENGINE_USES,
  phase_seconds_total: ["generate", "execute", "evaluate", "train", "checkpoint", "other"],
};

const STAGE_BUCKETS_SECONDS = [0.001, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600];

export class LearnerMetrics {
  readonly registry = registryOfProcess();
  readonly #gauges = GAUGES.map(([name, help, value]) => ({ name, gauge: this.#gauge(name, help), value }));
  readonly #evaluated = EVALUATED.map(([name, help, value]) => ({
    name,
    gauge: this.#gauge(name, help, "task"),
    value,
  }));
  readonly #warmStart = WARM_START.map(([name, help, value]) => ({
    name,
    gauge: this.#gauge(name, help),
    value,
  }));
  readonly #labelled = LABELLED.map(([name, help, label, values]) => {
    return { gauge: this.#gauge(name, help, label), label, values };
  });
  readonly #counters = COUNTERS.map(([name, help, label, values]) => {
    const counter = label ? this.#counter(name, help, label, KNOWN_VALUES[name]) : this.#counter(name, help);
    return { counter, label, values };
  });
  readonly #stages = new Histogram({
    name: "longrun_stage_duration_seconds",
    help: "Seconds of each stage of a sample",
    labelNames: ["stage"],
    buckets: STAGE_BUCKETS_SECONDS,
    registers: [this.registry],
  });
  readonly #inFlight = this.#gauge("executions", "Executions now", "state");
  readonly #actors = this.#gauge(
    "actors_by_isolation",
    "Connected actors, by the isolation level that their machine gives",
    "isolation",
  );
  readonly #missing = this.#gauge(
    "actors_missing_layer",
    "Connected actors whose machine lacks a layer of isolation",
    "layer",
  );
  readonly #generators = this.#gauge("generators", "Generators, by whether they get rows", "state");
  readonly #generatorRows = this.#gauge("generator_rows", "Rows at generators, and rows that wait for one", "state");
  readonly #ended = this.#counter(
    "execution_events_total",
    "Executions completed, lost, or queued again",
    "event",
    EXECUTION_EVENTS,
  );
  readonly #gradings = this.#counter(
    "grading_events_total",
    "Valid submissions that a guard flagged, and rewards that were raised to the floor or lowered to the cap",
    "event",
    [...guardNames, "clamped", "capped"],
  );
  #counted: ExecutionCounts = { queued: 0, running: 0, completed: 0, lost: 0, retried: 0, disrupted: 0 };

  constructor() {
    // A number that was not measured has no value. The number of finished iterations begins at 0.
    for (const { name, gauge } of this.#gauges) if (name !== "iteration") gauge.remove();
  }

  #gauge(name: string, help: string, ...labelNames: string[]): Gauge {
    return new Gauge({ name: `longrun_${name}`, help, labelNames, registers: [this.registry] });
  }

  /** @param known label values that begin at 0, so that the first one is an increase */
  #counter(name: string, help: string, label?: string, known: readonly string[] = []): Counter {
    const labelNames = label ? [label] : [];
    const counter = new Counter({ name: `longrun_${name}`, help, labelNames, registers: [this.registry] });
    for (const value of known) counter.inc({ [label!]: value }, 0);
    return counter;
  }

  observeGenerators({ waitingPrompts, generators }: GenerationStatus): void {
    const used = generators.filter(({ ready }) => ready).length;
    this.#generators.set({ state: "used" }, used);
    this.#generators.set({ state: "notUsed" }, generators.length - used);
    this.#generatorRows.set({ state: "waiting" }, waitingPrompts);
    this.#generatorRows.set({ state: "running" }, sum(generators.map(({ running }) => running)));
  }

  /** Call once per new line. A number that is null leaves its gauge unset. */
  observeIteration(line: IterationMetrics): void {
    this.show(line);
    for (const { counter, label, values } of this.#counters) {
      for (const [key, growth] of Object.entries(values(line))) counter.inc(label ? { [label]: key } : {}, growth);
    }
  }

  /** Sets the gauges alone, from a line that an earlier process has counted. */
  show(line: IterationMetrics): void {
    for (const { gauge, value } of this.#gauges) set(gauge, {}, value(line));
    for (const { gauge, label, values } of this.#labelled) {
      gauge.reset();
      for (const [key, value] of Object.entries(values(line))) set(gauge, { [label]: key }, value);
    }
  }

  /** Shows the newest evaluation of each task: before training, between iterations, or after it. */
  showEvaluation(evaluation: Evaluation): void {
    for (const { settings, before, during = [], after, model } of evaluationsOf(evaluation)) {
      const policies = [before, ...during, after, model].filter((policy) => policy !== undefined);
      const newest = policies.toSorted((a, b) => a.iteration - b.iteration).at(-1);
      const labels = { task: settings?.task ?? "" };
      if (newest) for (const { gauge, value } of this.#evaluated) set(gauge, labels, value(newest));
    }
  }

  showWarmStart(summary: WarmStartSummary): void {
    for (const { gauge, value } of this.#warmStart) set(gauge, {}, value(summary));
  }

  observeStage(stage: SampleStage, seconds: number): void {
    this.#stages.observe({ stage }, seconds);
  }

  /** Call once per graded sample. */
  observeGrade({ guards, clamped, capped }: { guards: readonly Guard[]; clamped: boolean; capped: boolean }): void {
    for (const event of [...guards, ...(clamped ? ["clamped"] : []), ...(capped ? ["capped"] : [])])
      this.#gradings.inc({ event });
  }

  /** Call as often as it changes, or from a timer. */
  observeActors(actors: readonly Pick<KnownActor, "connected" | "isolationLevel" | "isolationMissing">[]): void {
    this.#actors.reset();
    this.#missing.reset();
    for (const { connected, isolationLevel, isolationMissing } of actors) {
      if (!connected) continue;
      this.#actors.inc({ isolation: isolationLevel });
      for (const layer of isolationMissing) this.#missing.inc({ layer });
    }
  }

  /** Sets this process's counters to the counts of the run's earlier processes. */
  continueFrom(counts: ExecutionCounts): void {
    this.#counted = { ...counts };
  }

  /** Call it after each change, or from a timer; counters grow by the difference. */
  observeExecutions(counts: ExecutionCounts): void {
    this.#inFlight.set({ state: "queued" }, counts.queued);
    this.#inFlight.set({ state: "running" }, counts.running);
    for (const event of EXECUTION_EVENTS) {
      this.#ended.inc({ event }, Math.max(0, counts[event] - this.#counted[event]));
    }
    this.#counted = { ...counts };
  }
}

function set(gauge: Gauge, labels: Record<string, string>, value: number | null): void {
  if (value !== null && Number.isFinite(value)) gauge.set(labels, value);
  else gauge.remove(labels);
}

/** Lines of an earlier longrun have none. */
function improvePromptsOf({ improvePrompts }: IterationMetrics): Record<string, number> {
  return { ...improvePrompts };
}

/** Lines of an earlier longrun have none. */
function debuggingOf({ debugging }: IterationMetrics): Record<string, number> {
  return { ...debugging };
}

/** Lines of an earlier longrun have none. */
function failureStepsOf({ failureSteps }: IterationMetrics): Record<string, number> {
  return { ...failureSteps };
}

/** Lines of an earlier longrun have none. */
function engineSecondsOf({ engineSeconds }: IterationMetrics): Record<string, number> {
  return { ...engineSeconds };
}

function shares(counts: Record<string, number>): Record<string, number> {
  const total = sum(Object.values(counts));
  return Object.fromEntries(Object.entries(counts).map(([key, count]) => [key, count / Math.max(1, total)]));
}

function perTask(line: IterationMetrics, value: (task: IterationMetrics["tasks"][string]) => number | null) {
  return Object.fromEntries(Object.entries(line.tasks).map(([name, task]) => [name, value(task)]));
}
