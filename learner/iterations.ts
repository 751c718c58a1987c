import { MARKERS } from "../proto/markers.ts";
import { nothingToLearn } from "../proto/nothing-to-learn.ts";
import type { Checkpoints } from "./checkpoints.ts";
import type { Collected, RunContext } from "./context.ts";
import type { Generators } from "./generators/generators.ts";
import type { Grades } from "./grades.ts";
import { type IterationMetrics, iterationMetrics } from "./metrics/iteration.ts";
import { measuredSample } from "./metrics/measured-sample.ts";
import type { Phases } from "./phases.ts";
import { inCorpus } from "./pretrain/corpus.ts";
import type { UpdateResult } from "./rl/update.ts";
import { type Debugging, type Improvement, type Launched, nothingLaunched } from "./rollout/launched.ts";
import type { RunFiles } from "./run-files.ts";
import type { LearnerServer } from "./server/server.ts";
import type { Sample } from "./store/types.ts";

interface IterationsOptions extends RunContext {
  server: Pick<LearnerServer, "actors">;
  phases: Phases;
  grades: Grades;
  generators?: Pick<Generators, "takeCounts"> | undefined;
  checkpoints: Checkpoints;
  files: RunFiles;
  /** Batches come from another run (`--replay`): the store has none of their samples. */
  isReplay: boolean;
  /** Hashes of the starting policy's pretraining corpus, if the model folder has them. */
  corpus: Buffer | undefined;
}

/** An iteration whose update is done. */
interface FinishedIteration extends Collected {
  iteration: number;
  updated: UpdateResult;
}

/** Begins and ends iterations, and computes their metrics. */
export class Iterations {
  readonly #run: IterationsOptions;
  #sinceMs = performance.now();
  #launched = nothingLaunched();
  /** Executions lost and attempts repeated, up to the newest line of metrics. */
  #counted: { lost: number; retried: number };
  /** Slot-seconds of each actor, as of the newest call of `#busyGrowth`. */
  #busy = new Map<string, { busySeconds: number; aliveSeconds: number }>();

  constructor(run: IterationsOptions) {
    this.#run = run;
    const { lost, retried } = run.store.counts();
    this.#counted = { lost, retried };
  }

  /** Returns the iteration to run now, from 1. Its seconds count from here. */
  begin(): number {
    const { phases, progress } = this.#run;
    this.#busyGrowth();
    phases.reset();
    this.#sinceMs = performance.now();
    return progress.state.iteration + 1;
  }

  countLaunched(launched: Launched): void {
    const { instrumenterFaults, instrumentSeconds, improvePrompts, debugPrompts, ...counts } = launched;
    for (const key of Object.keys(improvePrompts) as Improvement[])
      this.#launched.improvePrompts[key] += improvePrompts[key];
    for (const key of Object.keys(debugPrompts) as Debugging[]) this.#launched.debugPrompts[key] += debugPrompts[key];
    for (const key of Object.keys(counts) as (keyof typeof counts)[]) this.#launched[key] += counts[key];
    this.#launched.instrumenterFaults.push(...instrumenterFaults);
    for (const seconds of instrumentSeconds) this.#run.metrics.observeStage("instrument", seconds);
  }

  /**
   * Ends an iteration. One transaction commits the line of metrics and the samples that the iteration used. Its checkpoint is written
   * while the next iteration collects, and has a row of its own: until then a restart continues from the previous checkpoint. The other
   * files are written last, because they can be made again from the store.
   */
  async finish(done: FinishedIteration): Promise<void> {
    const { spec, store, progress, phases, checkpoints, files, log, isReplay } = this.#run;
    const { iteration, batch, staleIds, surplusIds, brokenIds, zeroSignalIds } = done;
    const { everyIterations } = spec.learner.checkpoint;
    const startedAt = performance.now();
    const elapsedSeconds = progress.state.elapsedSeconds + (startedAt - this.#sinceMs) / 1000;
    const state = { ...progress.state, iteration, elapsedSeconds };
    let checkpoint: Awaited<ReturnType<Checkpoints["begin"]>> | undefined;
    const isDue = iteration % everyIterations === 0 || iteration === spec.stopping.iterations;
    if (isDue) phases.enter("checkpoint", 1);
    await checkpoints.settled(); // The previous checkpoint belongs to the store's newest iteration.
    if (isDue) checkpoint = await checkpoints.begin(state);
    phases.end();
    const line = this.#line(done, checkpoints.takeWritten());
    const sampleIds = isReplay ? [] : batch.map(({ id }) => id);
    const droppedIds = [...staleIds, ...surplusIds, ...brokenIds, ...zeroSignalIds];
    store.commitIteration({ iteration, sampleIds, droppedIds, metrics: { ...line } });
    if (checkpoint) checkpoints.keep(iteration, checkpoint.written);

    progress.state = { ...state, elapsedSeconds: line.elapsedSeconds };
    progress.lines.push(line);
    await files.append(line);
    if (line.noSignal)
      log.warn(
        { iteration, reward: line.meanReward, validFraction: line.validFraction },
        nothingToLearn(line.noSignalIterations, line.validFraction),
      );
    if (line.importanceDeviates)
      log.warn(
        { iteration, importanceMaxDeviation: line.importanceMaxDeviation },
        "the probabilities that tokens were sampled with are not those that the trainer computes with the same weights",
      );
    if (line.mostlyClamped)
      log.warn(
        { iteration, clampedRewards: line.clampedRewards },
        "most valid rewards of the batch were raised to the grader's rewardFloor, so the policy cannot tell good scores from bad " +
          "ones: give grader.rewardRange in a new run",
      );
    await files.update(line);
  }

  #line(done: FinishedIteration, checkpoint: { seconds: number; bytes: number } | undefined): IterationMetrics {
    const { spec, store, tasks, corpus, progress, phases, grades, generators, isReplay } = this.#run;
    const { iteration, batch, staleIds, staleWaited, brokenIds, zeroSignalIds, abandonedSeconds, updated } = done;
    const measured = (sample: Sample) =>
      measuredSample(sample, iteration, corpus && sample.program ? inCorpus(sample.program, corpus) : undefined);
    const { queued, running, lost, retried } = store.counts();
    // Fewer executions can be lost than before: some were the programs' own fault (Leases.settle).
    const newlyLost = Math.max(0, lost - this.#counted.lost);
    const executions = { queued, running, lost: newlyLost, retried: retried - this.#counted.retried };
    const seconds = (performance.now() - this.#sinceMs) / 1000;
    const launched = this.#launched;
    const ended = isReplay ? batch.flatMap(({ result }) => result?.durationSeconds ?? []) : grades.takeEndedSeconds();
    this.#launched = nothingLaunched();
    this.#counted = { lost, retried };
    return iterationMetrics({
      iteration,
      lineage: store.lineage,
      seconds,
      executions,
      staleWaited,
      checkpoint,
      wallTime: new Date(),
      tasks: tasks.all.map(({ name, grader }) => ({ name, ...grader, ...grader.rewardRange })),
      markerNames: MARKERS,
      trained: batch.map(measured),
      launchedSeconds: [...ended, ...abandonedSeconds],
      ...updated,
      durationWeights: updated.weights,
      klCoefficient: spec.algorithm.klCoefficient,
      tokensGenerated: launched.tokens,
      secondsByPhase: phases.seconds,
      engineSeconds: phases.engineSeconds,
      elapsedSeconds: progress.state.elapsedSeconds + seconds,
      actors: this.#busyGrowth(),
      improvePrompts: launched.improvePrompts,
      debugPrompts: launched.debugPrompts,
      verificationFailures: launched.verificationFailures,
      instrumenterFaults: launched.instrumenterFaults,
      staleDropped: staleIds.length,
      groupDropped: brokenIds.length,
      zeroSignalDropped: zeroSignalIds.length,
      ...(generators && { generation: generators.takeCounts() }),
      // A task that was removed and added again continues from its own newest line.
      previous: {
        tasks: Object.assign({}, ...progress.lines.map((line) => line.tasks)),
        noSignalIterations: progress.lines.at(-1)?.noSignalIterations,
      },
    });
  }

  /** Returns how much the actors' slot-seconds grew since the last call. A restarted actor counts from 0. */
  #busyGrowth(): { busySeconds: number; aliveSeconds: number } {
    const growth = { busySeconds: 0, aliveSeconds: 0 };
    for (const { name, busySeconds, aliveSeconds } of this.#run.server.actors()) {
      const before = this.#busy.get(name);
      const since = before && before.aliveSeconds <= aliveSeconds ? before : { busySeconds: 0, aliveSeconds: 0 };
      growth.busySeconds += busySeconds - since.busySeconds;
      growth.aliveSeconds += aliveSeconds - since.aliveSeconds;
      this.#busy.set(name, { busySeconds, aliveSeconds });
    }
    return growth;
  }
}
