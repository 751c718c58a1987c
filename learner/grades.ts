import type { Algorithm } from "../crds/trainingrun.ts";
import type { Logger } from "./log.ts";
import type { LearnerMetrics } from "./metrics/prometheus.ts";
import { family } from "./rollout/family.ts";
import { gradeSample } from "./rollout/grade-sample.ts";
import type { Store } from "./store/store.ts";
import type { Task } from "./tasks/task.ts";

export interface GradesOptions {
  store: Store;
  task: Task;
  algorithm: Algorithm;
  metrics: LearnerMetrics;
  log: Logger;
}

/** Grades executions as they finish. */
export class Grades {
  readonly #options: GradesOptions;
  /** Seconds of each execution for training that ended since `takeEnded`. */
  #endedSeconds: number[] = [];

  constructor(options: GradesOptions) {
    this.#options = options;
    options.store.events.on("finished", () => this.gradeFinished());
    this.gradeFinished();
  }

  /** Grades what has finished and has no grade yet. */
  gradeFinished(): void {
    const { store, task, algorithm, metrics, log } = this.#options;
    for (const sample of store.ungraded()) {
      const started = performance.now();
      const grade = gradeSample(sample, store.submission(sample.id), task, algorithm);
      store.setGrade(sample.id, { ...grade, family: sample.program && family(sample.program) });
      const { score, reward, reason } = grade;
      log.info({ execution: sample.id, outcome: sample.result?.outcome, score, reward, reason }, "graded");
      metrics.observeGrade(grade);
      metrics.observeStage("grade", (performance.now() - started) / 1000);
      if (sample.result) {
        if (sample.purpose === "training") this.#endedSeconds.push(sample.result.durationSeconds);
        metrics.observeStage("execute", sample.result.durationSeconds);
        metrics.observeStage("queue", sample.result.queueSeconds);
      }
    }
  }

  /** Returns the seconds of each execution for training that ended since the last call. */
  takeEndedSeconds(): number[] {
    const ended = this.#endedSeconds;
    this.#endedSeconds = [];
    return ended;
  }
}
