import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { RunContext } from "./context.ts";
import { bestSampleOf, writeBest } from "./evaluation/best.ts";
import { headlines } from "./evaluation/figures.ts";
import { privateFactsOf } from "./evaluation/private-score.ts";
import { logNotice } from "./log.ts";
import { commonErrors as commonErrorsOf } from "./metrics/common-errors.ts";
import type { IterationMetrics } from "./metrics/iteration.ts";
import type { MetricsFile } from "./metrics/jsonl.ts";
import { type Evaluation, type RunSummary, writeSummary } from "./metrics/summary.ts";
import type { TensorBoardFile } from "./metrics/tensorboard.ts";
import type { ReportWriter } from "./report/writer.ts";
import type { LearnerServer } from "./server/server.ts";

/** Number of newest samples whose errors are reported while no program was valid. */
const ERROR_SAMPLES = 500;

export interface RunFilesOptions extends RunContext {
  server: Pick<LearnerServer, "actors">;
  metricsFile: MetricsFile;
  tensorBoard: TensorBoardFile;
  report: ReportWriter;
  summary: RunSummary;
}

/**
 * Writes a run's outputs: metrics.jsonl, TensorBoard, Prometheus, summary.json, the best program, the report and
 * the status. All of them can be made again from the store.
 */
export class RunFiles {
  readonly #run: RunFilesOptions;
  /** The contents of summary.json. */
  summary: RunSummary;
  /** The id of the best sample by task. */
  readonly #bestIds = new Map<string, string>();
  #byTask: boolean | undefined;

  constructor(run: RunFilesOptions) {
    this.#run = run;
    this.summary = run.summary;
  }

  /** Appends a line of metrics that the store has. */
  async append(line: IterationMetrics): Promise<void> {
    const { metricsFile, tensorBoard, metrics } = this.#run;
    await metricsFile.append(line);
    await tensorBoard.append(line);
    metrics.observeIteration(line);
  }

  /** Brings the best program, the summary, the report and the status up to the newest line. */
  async update(line: IterationMetrics): Promise<void> {
    const { report, status } = this.#run;
    const hasBest = await this.#keepBest();
    const commonErrors = hasBest ? undefined : commonErrorsOf(this.#run.store.newestFailed(ERROR_SAMPLES));
    await this.updateSummary({ commonErrors });
    report.request();
    status.update({ iterationJson: JSON.stringify(line) });
  }

  /** Brings the best program and the report up to the store. */
  async showBest(): Promise<void> {
    await this.#keepBest();
    this.#run.report.request();
  }

  /** Shows the results of the evaluations in the status, and the newest one's as metrics. */
  announceEvaluation(evaluation: Evaluation): void {
    const { status, metrics } = this.#run;
    status.update({ evaluationJson: JSON.stringify(headlines(evaluation)) });
    metrics.showEvaluation(evaluation);
  }

  /** Says something to the user. */
  notice(text: string): void {
    logNotice(this.#run.log, text);
  }

  /** Changes the given fields of summary.json. */
  async updateSummary(change: Partial<RunSummary>): Promise<void> {
    const { directory, server, store, progress } = this.#run;
    store.checkFence();
    const [actor] = server.actors().filter(({ connected }) => connected);
    this.summary = {
      ...this.summary,
      ...(actor && {
        isolationLevel: actor.isolationLevel,
        versions: { ...this.summary.versions, ...actor.versions },
      }),
      iterations: progress.state.iteration,
      elapsedSeconds: progress.state.elapsedSeconds,
      updatedAt: new Date().toISOString(),
      ...change,
    };
    await writeSummary(directory, this.summary);
  }

  /** Returns whether the run has had a valid program. */
  async #keepBest(): Promise<boolean> {
    const { directory, store, tasks, spec } = this.#run;
    this.#byTask ??= await this.#layOutBest();
    let any = false;
    for (const task of tasks.all) {
      const { name, grader } = task;
      const best = store.bestSample(name, grader.direction);
      const submission = best && store.submission(best.id);
      const kept = best && bestSampleOf(best, submission, grader.metric);
      any ||= best !== undefined;
      if (kept === undefined || this.#bestIds.get(name) === kept.id) continue;
      const privateFacts = await privateFactsOf(task, submission!, {
        score: kept.score,
        seed: spec.seed,
        gaps: task.privateRows === undefined ? [] : store.gaps(name),
      });
      await writeBest(join(directory, "best", ...(this.#byTask ? [name] : [])), { ...kept, ...privateFacts });
      this.#bestIds.set(name, kept.id);
    }
    return any;
  }

  /** The best program is in `best/`, in a folder for each task once there is a second one. @returns whether there is */
  async #layOutBest(): Promise<boolean> {
    const { directory, store, tasks } = this.#run;
    const byTask = store.taskNames().union(new Set(tasks.names)).size > 1;
    const only = join(directory, "best", "program.py");
    if (byTask && existsSync(only)) await rm(join(directory, "best"), { recursive: true });
    return byTask;
  }
}
