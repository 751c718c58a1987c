import { join } from "node:path";
import { bestSampleOf, writeBest } from "./evaluation/best.ts";
import { headline } from "./evaluation/figures.ts";
import type { IterationMetrics } from "./metrics/iteration.ts";
import type { MetricsFile } from "./metrics/jsonl.ts";
import type { LearnerMetrics } from "./metrics/prometheus.ts";
import { type Evaluation, type RunSummary, writeSummary } from "./metrics/summary.ts";
import type { TensorBoardFile } from "./metrics/tensorboard.ts";
import type { RunProgress } from "./progress.ts";
import type { ReportWriter } from "./report/writer.ts";
import type { LearnerServer } from "./server/server.ts";
import type { StatusBoard } from "./server/status.ts";
import type { Store } from "./store/store.ts";
import type { CheckpointRow } from "./store/types.ts";
import type { Task } from "./tasks/task.ts";

export interface RunFilesOptions {
  directory: string;
  task: Task;
  store: Store;
  server: Pick<LearnerServer, "actors">;
  status: StatusBoard;
  progress: RunProgress;
  metricsFile: MetricsFile;
  tensorBoard: TensorBoardFile;
  metrics: LearnerMetrics;
  report: ReportWriter;
  summary: RunSummary;
}

/**
 * What a run shows of itself: the lines of metrics.jsonl, TensorBoard and Prometheus, summary.json, the best program, the
 * report and the status. All of it can be made anew from the store.
 */
export class RunFiles {
  readonly #options: RunFilesOptions;
  #summary: RunSummary;
  #bestId = "";

  constructor(options: RunFilesOptions) {
    this.#options = options;
    this.#summary = options.summary;
  }

  get summary(): RunSummary {
    return this.#summary;
  }

  /** A line of metrics that the store has. */
  async append(line: IterationMetrics): Promise<void> {
    const { metricsFile, tensorBoard, metrics } = this.#options;
    await metricsFile.append(line);
    await tensorBoard.append(line);
    metrics.observeIteration(line);
  }

  /** Brings the best program, the summary, the report and the status up to the newest line. */
  async update(line: IterationMetrics, checkpoint: Pick<CheckpointRow, "iteration" | "digest" | "path"> | undefined) {
    const { report, status } = this.#options;
    await this.#keepBest();
    await this.updateSummary({});
    report.request();
    status.update({ iterationJson: JSON.stringify(line), checkpoint });
  }

  /** Tells whoever watches what the evaluations came to. */
  announceEvaluation(evaluation: Evaluation): void {
    this.#options.status.update({ evaluationJson: JSON.stringify(headline(evaluation)) });
  }

  /** Changes the given fields of summary.json. */
  async updateSummary(change: Partial<RunSummary>): Promise<void> {
    const { directory, server, store, progress } = this.#options;
    store.checkFence();
    const [actor] = server.actors().filter(({ connected }) => connected);
    this.#summary = {
      ...this.#summary,
      ...(actor && {
        isolationLevel: actor.isolationLevel,
        versions: { ...this.#summary.versions, ...actor.versions },
      }),
      iterations: progress.state.iteration,
      elapsedSeconds: progress.state.elapsedSeconds,
      updatedAt: new Date().toISOString(),
      ...change,
    };
    await writeSummary(directory, this.#summary);
  }

  async #keepBest(): Promise<void> {
    const { directory, store, task } = this.#options;
    const best = store.bestSample(task.name, task.grader.direction);
    const submission = best && store.submission(best.id);
    const kept = best && bestSampleOf(best, submission, task.grader.metric);
    if (kept === undefined || this.#bestId === kept.id) return;
    await writeBest(join(directory, "best"), kept);
    this.#bestId = kept.id;
  }
}
