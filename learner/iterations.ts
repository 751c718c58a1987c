import type { TrainingRunSpec } from "../crds/trainingrun.ts";
import { MARKERS } from "../proto/markers.ts";
import type { Checkpoints } from "./checkpoints.ts";
import type { Grades } from "./grades.ts";
import type { Logger } from "./log.ts";
import { type IterationMetrics, iterationMetrics, type MeasuredSample } from "./metrics/iteration.ts";
import type { LearnerMetrics } from "./metrics/prometheus.ts";
import { measuredSample } from "./metrics/samples.ts";
import type { Phases } from "./phases.ts";
import { inCorpus } from "./pretrain/corpus.ts";
import type { Collected, RunProgress } from "./progress.ts";
import type { UpdateResult } from "./rl/update.ts";
import { type Launched, nothingLaunched } from "./rollout/rollout.ts";
import type { RunFiles } from "./run-files.ts";
import type { LearnerServer } from "./server/server.ts";
import type { Store } from "./store/store.ts";
import type { Sample } from "./store/types.ts";
import type { Task } from "./tasks/task.ts";

export interface IterationsOptions {
  spec: TrainingRunSpec;
  task: Task;
  store: Store;
  server: Pick<LearnerServer, "actors">;
  progress: RunProgress;
  phases: Phases;
  grades: Grades;
  checkpoints: Checkpoints;
  files: RunFiles;
  metrics: LearnerMetrics;
  log: Logger;
  /** Batches are another run's (`--replay`): the store has none of their samples. */
  isReplay: boolean;
  /** Hashes of the starting policy's pretraining corpus, where the model folder has them. */
  corpus: Buffer | undefined;
}

/** An iteration whose update is done. */
export interface FinishedIteration extends Collected {
  iteration: number;
  updated: UpdateResult;
}

/** Begins and ends iterations, and counts what their lines of metrics say. */
export class Iterations {
  readonly #options: IterationsOptions;
  #sinceMs = performance.now();
  #launched = nothingLaunched();
  /** Executions lost and attempts repeated, up to the last line. */
  #counted: { lost: number; retried: number };
  #busy = new Map<string, { busySeconds: number; aliveSeconds: number }>();

  constructor(options: IterationsOptions) {
    this.#options = options;
    const { lost, retried } = options.store.counts();
    this.#counted = { lost, retried };
  }

  /** Returns the iteration to run now, from 1. Its seconds count from here. */
  begin(): number {
    const { phases, progress } = this.#options;
    phases.reset();
    this.#busyGrowth();
    this.#sinceMs = performance.now();
    return progress.state.iteration + 1;
  }

  countLaunched(launched: Launched): void {
    const { instrumenterFaults, instrumentSeconds, ...counts } = launched;
    for (const key of Object.keys(counts) as (keyof typeof counts)[]) this.#launched[key] += counts[key];
    this.#launched.instrumenterFaults.push(...instrumenterFaults);
    for (const seconds of instrumentSeconds) this.#options.metrics.observeStage("instrument", seconds);
  }

  /**
   * Ends an iteration: checkpoint on disk, then its row in the store, the line of metrics and what the iteration used,
   * in one transaction; then what can be made anew from the store: metrics.jsonl, the best program, the report.
   */
  async finish(done: FinishedIteration): Promise<void> {
    const { spec, store, progress, phases, checkpoints, files, log, isReplay } = this.#options;
    const { iteration, batch, staleIds, surplusIds, brokenIds } = done;
    const { everyIterations } = spec.learner.checkpoint;
    const startedAt = performance.now();
    const elapsedSeconds = progress.state.elapsedSeconds + (startedAt - this.#sinceMs) / 1000;
    const state = { ...progress.state, iteration, elapsedSeconds };
    let checkpoint: Awaited<ReturnType<Checkpoints["save"]>> | undefined;
    if (iteration % everyIterations === 0 || iteration === spec.stopping.iterations) {
      phases.enter("checkpoint", 1);
      checkpoint = await checkpoints.save(state);
    }
    phases.end();
    const seconds = (performance.now() - startedAt) / 1000;
    const line = this.#line(done, checkpoint && { seconds, bytes: checkpoint.bytes });
    const sampleIds = isReplay ? [] : batch.map(({ id }) => id);
    const droppedIds = [...staleIds, ...surplusIds, ...brokenIds];
    store.commitIteration({ iteration, sampleIds, droppedIds, metrics: { ...line } }, checkpoint);

    progress.state = { ...state, elapsedSeconds: line.elapsedSeconds };
    progress.lines.push(line);
    await files.append(line);
    if (line.noSignal)
      log.warn(
        { iteration, reward: line.meanReward, validFraction: line.validFraction },
        "all programs of the batch have the same reward, so there is nothing to learn from: the policy stays as it is",
      );
    if (line.importanceDeviates)
      log.warn(
        { iteration, importanceMaxDeviation: line.importanceMaxDeviation },
        "the probabilities that tokens were sampled with are not those that the trainer computes with the same weights",
      );
    if (checkpoint) await checkpoints.prune();
    await files.update(line, checkpoint && { iteration, digest: checkpoint.digest, path: checkpoint.path });
  }

  #line(done: FinishedIteration, checkpoint: { seconds: number; bytes: number } | undefined): IterationMetrics {
    const { spec, store, task, corpus, progress, phases, grades, isReplay } = this.#options;
    const { iteration, batch, staleIds, staleWaited, brokenIds, abandonedSeconds, updated } = done;
    const measured = (sample: Sample): MeasuredSample =>
      measuredSample(sample, iteration, corpus && sample.program ? inCorpus(sample.program, corpus) : undefined);
    const { queued, running, lost, retried } = store.counts();
    // Fewer lost than before: some turned out to be the programs' own doing (Leases.settle).
    const newlyLost = Math.max(0, lost - this.#counted.lost);
    const executions = { queued, running, lost: newlyLost, retried: retried - this.#counted.retried };
    const seconds = (performance.now() - this.#sinceMs) / 1000;
    const launched = this.#launched;
    const ended = grades.takeEndedSeconds();
    this.#launched = nothingLaunched();
    this.#counted = { lost, retried };
    return iterationMetrics({
      iteration,
      lineage: store.lineage,
      tasks: [{ name: task.name, ...task.grader, ...task.grader.rewardRange }],
      markerNames: MARKERS,
      trained: batch.map(measured),
      launchedSeconds: [
        ...(isReplay ? batch.flatMap(({ result }) => result?.durationSeconds ?? []) : ended),
        ...abandonedSeconds,
      ],
      durationWeights: updated.weights,
      kl: updated.kl,
      klCoefficient: spec.algorithm.klCoefficient,
      entropy: updated.entropy,
      importanceMaxDeviation: updated.importanceMaxDeviation,
      importanceDeviates: updated.importanceDeviates,
      importanceMean: updated.importanceMean,
      importanceCappedShare: updated.importanceCappedShare,
      learningRate: updated.learningRate,
      criticLearningRate: updated.criticLearningRate,
      policySteps: updated.policySteps,
      criticSteps: updated.criticSteps,
      tokensGenerated: launched.tokens,
      secondsByPhase: phases.seconds,
      seconds,
      elapsedSeconds: progress.state.elapsedSeconds + seconds,
      actors: this.#busyGrowth(),
      executions,
      verificationFailures: launched.verificationFailures,
      instrumenterFaults: launched.instrumenterFaults,
      staleDropped: staleIds.length,
      staleWaited,
      zeroSpreadShare: updated.zeroSpreadShare,
      noSignal: updated.noSignal,
      groupDropped: brokenIds.length,
      checkpoint,
      previous: progress.lines.at(-1),
      wallTime: new Date(),
    });
  }

  /** Growth of the actors' slot-seconds since the last call; a restarted actor counts from 0. */
  #busyGrowth(): { busySeconds: number; aliveSeconds: number } {
    const growth = { busySeconds: 0, aliveSeconds: 0 };
    for (const { name, busySeconds, aliveSeconds } of this.#options.server.actors()) {
      const before = this.#busy.get(name);
      const since = before && before.aliveSeconds <= aliveSeconds ? before : { busySeconds: 0, aliveSeconds: 0 };
      growth.busySeconds += busySeconds - since.busySeconds;
      growth.aliveSeconds += aliveSeconds - since.aliveSeconds;
      this.#busy.set(name, { busySeconds, aliveSeconds });
    }
    return growth;
  }
}
