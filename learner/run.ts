import { join } from "node:path";
import type { TrainingRunSpec } from "../crds/trainingrun.ts";
import { MARKERS } from "../proto/markers.ts";
import { bestSampleOf, writeBest } from "./best.ts";
import { pruneCheckpoints, saveCheckpoint, type TrainerState } from "./checkpoint.ts";
import type { Collected } from "./collect.ts";
import { type Evaluation, headline } from "./evaluation/figures.ts";
import { gradeSample, type Task } from "./grading/task.ts";
import type { Logger } from "./log.ts";
import { type IterationMetrics, iterationMetrics, type MeasuredSample } from "./metrics/iteration.ts";
import type { MetricsFile } from "./metrics/jsonl.ts";
import type { LearnerMetrics } from "./metrics/prometheus.ts";
import { measuredSample } from "./metrics/samples.ts";
import { type RunSummary, writeSummary } from "./metrics/summary.ts";
import type { TensorBoardFile } from "./metrics/tensorboard.ts";
import type { Engine } from "./ppo/engine.ts";
import type { UpdateResult } from "./ppo/update.ts";
import { inCorpus } from "./pretrain/corpus.ts";
import type { ReportWriter } from "./report/writer.ts";
import { family } from "./rollout/family.ts";
import { type Launched, nothingLaunched, type Rollout } from "./rollout/rollout.ts";
import type { LearnerServer } from "./server/server.ts";
import { Phase, type StatusBoard } from "./server/status.ts";
import type { WaitOptions } from "./server/waiting.ts";
import type { Store } from "./store/store.ts";
import type { CheckpointRow, Sample } from "./store/types.ts";

/** What the learner's time goes to; keys of `secondsByPhase`. */
const PHASES = {
  generate: Phase.GENERATING,
  execute: Phase.EXECUTING,
  evaluate: Phase.EVALUATING,
  train: Phase.TRAINING,
  checkpoint: Phase.CHECKPOINTING,
  evaluatePolicy: Phase.FINAL_EVALUATION,
};
export type PhaseName = keyof typeof PHASES;

/** Once begun, an update is carried through: its weights are no iteration's before it has ended. */
const UPDATE: readonly PhaseName[] = ["evaluate", "train", "checkpoint"];

/** The parts that a run is wired from. */
export interface RunParts {
  directory: string;
  spec: TrainingRunSpec;
  task: Task;
  engine: Engine;
  store: Store;
  server: LearnerServer;
  status: StatusBoard;
  rollout: Rollout;
  metricsFile: MetricsFile;
  tensorBoard: TensorBoardFile;
  metrics: LearnerMetrics;
  report: ReportWriter;
  log: Logger;
  /** Whether somebody else makes the actors (`--stay`): they are waited for as long as it takes. */
  awaitsActors: boolean;
  /** Stops the run wherever it is. */
  signal: AbortSignal;
  /** Stops it where the weights are those of a finished iteration. */
  suspended: AbortSignal;
  /** Lines of the iterations that the weights have behind them. */
  lines: IterationMetrics[];
  state: Omit<TrainerState, "digest">;
  summary: RunSummary;
  /** `--replay`: batches and results come from here, no actor is asked. */
  recorded?: { batch(iteration: number): Collected };
  /** Hashes of the starting policy's pretraining corpus, where the model folder has them. */
  corpus?: Buffer;
}

/** An iteration whose update is done. */
interface FinishedIteration extends Collected {
  iteration: number;
  updated: UpdateResult;
}

/** A run as it goes: its parts, how far it is, and the bookkeeping between iterations. */
export class Run {
  readonly #parts: RunParts;
  /** What ends the loop between two updates. */
  readonly #stop: AbortSignal;
  readonly lines: IterationMetrics[];
  state: Omit<TrainerState, "digest">;
  summary: RunSummary;
  #phase: PhaseName | undefined;
  #phaseSince = 0;
  #seconds: Partial<Record<PhaseName, number>> = {};
  #iterationSince = performance.now();
  #launched = nothingLaunched();
  /** Seconds of each execution for training that ended since the last line of metrics. */
  #ended: number[] = [];
  /** Executions lost and attempts repeated, up to the last line. */
  #counted = { lost: 0, retried: 0 };
  #bestId = "";
  #busy = new Map<string, { busySeconds: number; aliveSeconds: number }>();

  constructor(parts: RunParts) {
    this.#parts = parts;
    this.#stop = AbortSignal.any([parts.signal, parts.suspended]);
    this.lines = parts.lines;
    this.state = parts.state;
    this.summary = parts.summary;
    const { lost, retried } = parts.store.counts();
    this.#counted = { lost, retried };
    parts.store.events.on("finished", () => this.gradeFinished());
    this.gradeFinished();
  }

  get directory(): string {
    return this.#parts.directory;
  }
  get spec(): TrainingRunSpec {
    return this.#parts.spec;
  }
  get task(): Task {
    return this.#parts.task;
  }
  get engine(): Engine {
    return this.#parts.engine;
  }
  get store(): Store {
    return this.#parts.store;
  }
  get server(): LearnerServer {
    return this.#parts.server;
  }
  get rollout(): Rollout {
    return this.#parts.rollout;
  }
  get recorded(): RunParts["recorded"] {
    return this.#parts.recorded;
  }

  /** For every wait for results: what does not end by itself ends the wait. */
  get waiting(): WaitOptions {
    const { executionTimeoutSeconds } = this.spec.tasks[0];
    const { leaseSeconds, stallSeconds } = this.spec.learner;
    const idleSeconds = this.#parts.awaitsActors ? Infinity : executionTimeoutSeconds + leaseSeconds + stallSeconds;
    return { stallSeconds, idleSeconds, signal: this.#stop };
  }

  /** Iteration to run now, from 1. Its seconds count from here. */
  beginIteration(): number {
    this.#stop.throwIfAborted();
    this.#endPhase(undefined);
    this.#seconds = {};
    this.#busyGrowth();
    this.#iterationSince = performance.now();
    return this.state.iteration + 1;
  }

  /** What the learner does now, for the status and the seconds by phase. */
  phase(name: PhaseName, total = 0, done = 0): void {
    (UPDATE.includes(name) ? this.#parts.signal : this.#stop).throwIfAborted();
    if (name !== this.#phase) this.#endPhase(name);
    this.#parts.status.update({
      phase: PHASES[name],
      iteration: this.state.iteration + 1,
      phaseTotal: total,
      phaseDone: done,
    });
  }

  /** How far the phase is that the last call of `phase` began, and on what it is. */
  progress(done: number, message: string): void {
    this.#parts.status.update({ phaseDone: done, message });
  }

  #endPhase(next: PhaseName | undefined): void {
    const now = performance.now();
    if (this.#phase !== undefined) {
      this.#seconds[this.#phase] = (this.#seconds[this.#phase] ?? 0) + (now - this.#phaseSince) / 1000;
    }
    this.#phase = next;
    this.#phaseSince = now;
  }

  /** Whether the weights are those of the newest finished iteration, as they are but while an update changes them. */
  get isBetweenUpdates(): boolean {
    return this.#phase === undefined || !UPDATE.includes(this.#phase);
  }

  countLaunched(launched: Launched): void {
    const { instrumenterFaults, instrumentSeconds, ...counts } = launched;
    for (const key of Object.keys(counts) as (keyof typeof counts)[]) this.#launched[key] += counts[key];
    this.#launched.instrumenterFaults.push(...instrumenterFaults);
    for (const seconds of instrumentSeconds) this.#parts.metrics.observeStage("instrument", seconds);
  }

  /** Grades what has finished and has no grade yet; keeps the best program at hand. */
  gradeFinished(): void {
    const { store, task, spec, metrics } = this.#parts;
    for (const sample of store.ungraded()) {
      const started = performance.now();
      const grade = gradeSample(sample, store.submission(sample.id), task, spec.algorithm);
      store.setGrade(sample.id, { ...grade, family: sample.program && family(sample.program) });
      this.#parts.log.info(
        {
          execution: sample.id,
          outcome: sample.result?.outcome,
          score: grade.score,
          reward: grade.reward,
          reason: grade.reason,
        },
        "graded",
      );
      metrics.observeGrade(grade);
      metrics.observeStage("grade", (performance.now() - started) / 1000);
      if (sample.result) {
        if (sample.purpose === "training") this.#ended.push(sample.result.durationSeconds);
        metrics.observeStage("execute", sample.result.durationSeconds);
        metrics.observeStage("queue", sample.result.queueSeconds);
      }
    }
  }

  /**
   * Ends an iteration: checkpoint on disk, then its row in the store, the line of metrics and what the iteration used,
   * in one transaction; then what can be made anew from the store: metrics.jsonl, the best program, the report.
   */
  async finishIteration(done: FinishedIteration): Promise<void> {
    const { directory, engine, store, spec, metricsFile, tensorBoard, metrics, report, status } = this.#parts;
    const { iteration, batch, staleIds, surplusIds, brokenIds, updated } = done;
    const { everyIterations } = spec.learner.checkpoint;
    const startedAt = performance.now();
    const elapsedSeconds = this.state.elapsedSeconds + (startedAt - this.#iterationSince) / 1000;
    const state = { ...this.state, iteration, klCoefficient: updated.nextKlCoefficient, elapsedSeconds };
    let checkpoint: Awaited<ReturnType<typeof saveCheckpoint>> | undefined;
    if (iteration % everyIterations === 0 || iteration === spec.stopping.iterations) {
      this.phase("checkpoint", 1);
      store.checkFence();
      checkpoint = await saveCheckpoint(directory, engine, store.lineage, state);
    }
    this.#endPhase(undefined);
    const seconds = (performance.now() - startedAt) / 1000;
    const line = this.#line(done, checkpoint && { seconds, bytes: checkpoint.bytes });
    const sampleIds = this.recorded ? [] : batch.map(({ id }) => id);
    const droppedIds = [...staleIds, ...surplusIds, ...brokenIds];
    store.commitIteration({ iteration, sampleIds, droppedIds, metrics: { ...line } }, checkpoint);

    this.state = { ...state, elapsedSeconds: line.elapsedSeconds };
    this.lines.push(line);
    await metricsFile.append(line);
    await tensorBoard.append(line);
    metrics.observeIteration(line);
    if (line.noSignal)
      this.#parts.log.warn(
        { iteration, reward: line.meanReward, validFraction: line.validFraction },
        "all programs of the batch have the same reward, so there is nothing to learn from: the policy stays as it is",
      );
    if (checkpoint) await this.#prune();
    await this.#keepBest();
    await this.updateSummary({});
    report.request();
    status.update({
      iterationJson: JSON.stringify(line),
      checkpoint: checkpoint && { iteration, digest: checkpoint.digest, path: checkpoint.path },
    });
  }

  /** Brings the newest finished iteration to the disk, if it is not there. @returns undefined before the first one */
  async checkpoint(): Promise<CheckpointRow | undefined> {
    const { directory, engine, store, status } = this.#parts;
    const { iteration } = this.state;
    if (iteration > 0 && store.checkpoints()[0]?.iteration !== iteration) {
      store.checkFence();
      status.update({ phase: Phase.CHECKPOINTING, phaseTotal: 1 });
      const saved = await saveCheckpoint(directory, engine, store.lineage, this.state);
      store.commitCheckpoint({ iteration, ...saved });
      await this.#prune();
    }
    const [newest] = store.checkpoints();
    if (newest) status.update({ checkpoint: newest });
    return newest;
  }

  async #prune(): Promise<void> {
    const { directory, store, spec } = this.#parts;
    await pruneCheckpoints(directory, store.keepCheckpoints(spec.learner.checkpoint.keepLast));
  }

  #line(done: FinishedIteration, checkpoint: { seconds: number; bytes: number } | undefined): IterationMetrics {
    const { store, task, corpus } = this.#parts;
    const { iteration, batch, staleIds, staleWaited, brokenIds, abandonedSeconds, updated } = done;
    const measured = (sample: Sample): MeasuredSample =>
      measuredSample(sample, iteration, corpus && sample.program ? inCorpus(sample.program, corpus) : undefined);
    const { queued, running, lost, retried } = store.counts();
    // Fewer lost than before: some turned out to be the programs' own doing (Leases.settle).
    const newlyLost = Math.max(0, lost - this.#counted.lost);
    const executions = { queued, running, lost: newlyLost, retried: retried - this.#counted.retried };
    const seconds = (performance.now() - this.#iterationSince) / 1000;
    const launched = this.#launched;
    const ended = this.#ended;
    this.#launched = nothingLaunched();
    this.#ended = [];
    this.#counted = { lost, retried };
    return iterationMetrics({
      iteration,
      lineage: store.lineage,
      tasks: [{ name: task.name, ...task.grader, ...task.grader.rewardRange }],
      markerNames: MARKERS,
      trained: batch.map(measured),
      launchedSeconds: [
        ...(this.recorded ? batch.flatMap(({ result }) => result?.durationSeconds ?? []) : ended),
        ...abandonedSeconds,
      ],
      durationWeights: updated.weights,
      kl: updated.kl,
      klCoefficient: this.state.klCoefficient,
      entropy: updated.entropy,
      importanceMaxDeviation: updated.importanceMaxDeviation,
      importanceMean: updated.importanceMean,
      importanceCappedShare: updated.importanceCappedShare,
      learningRate: updated.learningRate,
      criticLearningRate: updated.criticLearningRate,
      policySteps: updated.policySteps,
      criticSteps: updated.criticSteps,
      tokensGenerated: launched.tokens,
      secondsByPhase: { ...this.#seconds },
      seconds,
      elapsedSeconds: this.state.elapsedSeconds + seconds,
      actors: this.#busyGrowth(),
      executions,
      verificationFailures: launched.verificationFailures,
      instrumenterFaults: launched.instrumenterFaults,
      staleDropped: staleIds.length,
      staleMasked: updated.maskedSamples,
      staleWaited,
      zeroSpreadShare: updated.zeroSpreadShare,
      noSignal: updated.noSignal,
      groupDropped: brokenIds.length,
      checkpoint,
      previous: this.lines.at(-1),
      wallTime: new Date(),
    });
  }

  /** Growth of the actors' slot-seconds since the last call; a restarted actor counts from 0. */
  #busyGrowth(): { busySeconds: number; aliveSeconds: number } {
    const growth = { busySeconds: 0, aliveSeconds: 0 };
    for (const { name, busySeconds, aliveSeconds } of this.server.actors()) {
      const before = this.#busy.get(name);
      const since = before && before.aliveSeconds <= aliveSeconds ? before : { busySeconds: 0, aliveSeconds: 0 };
      growth.busySeconds += busySeconds - since.busySeconds;
      growth.aliveSeconds += aliveSeconds - since.aliveSeconds;
      this.#busy.set(name, { busySeconds, aliveSeconds });
    }
    return growth;
  }

  async #keepBest(): Promise<void> {
    const { directory, store, task } = this.#parts;
    const best = store.bestSample(task.name, task.grader.direction);
    const submission = best && store.submission(best.id);
    const kept = best && bestSampleOf(best, submission, task.grader.metric);
    if (kept === undefined || this.#bestId === kept.id) return;
    await writeBest(join(directory, "best"), kept);
    this.#bestId = kept.id;
  }

  /** Tells whoever watches what the evaluations came to. */
  announceEvaluation(evaluation: Evaluation): void {
    this.#parts.status.update({ evaluationJson: JSON.stringify(headline(evaluation)) });
  }

  /** Changes the given fields of summary.json. */
  async updateSummary(change: Partial<RunSummary>): Promise<void> {
    const { directory, server, store } = this.#parts;
    store.checkFence();
    const [actor] = server.actors().filter(({ connected }) => connected);
    this.summary = {
      ...this.summary,
      ...(actor && {
        isolationLevel: actor.isolationLevel,
        versions: { ...this.summary.versions, ...actor.versions },
      }),
      iterations: this.state.iteration,
      elapsedSeconds: this.state.elapsedSeconds,
      updatedAt: new Date().toISOString(),
      ...change,
    };
    await writeSummary(directory, this.summary);
  }
}
