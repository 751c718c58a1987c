import type { RunContext } from "./context.ts";
import { family } from "./rollout/family.ts";
import { gradeSample } from "./rollout/grade-sample.ts";
import { Standings } from "./rollout/standings.ts";

/** Grades executions as they finish. */
export class Grades {
  readonly #run: Omit<RunContext, "progress">;
  readonly #standings: Standings;
  /** Seconds of each execution for training that ended since `takeEndedSeconds`. */
  #endedSeconds: number[] = [];

  constructor(run: Omit<RunContext, "progress">) {
    this.#run = run;
    this.#standings = new Standings(run.store);
    run.store.events.on("finished", () => this.gradeFinished());
    this.gradeFinished();
  }

  /** Grades every finished sample that has no grade yet. */
  gradeFinished(): void {
    const { store, tasks, spec, metrics, log } = this.#run;
    for (const sample of store.ungraded()) {
      const started = performance.now();
      const [submission, task] = [store.submission(sample.id), tasks.named(sample.task)];
      const isRelative = ["Rank", "Improvement"].includes(task.rewardRules.reward ?? "Score");
      const standing = isRelative ? this.#standings.of(sample) : undefined;
      const grade = gradeSample(sample, submission, task, spec.algorithm, standing);
      const privateScore = grade.valid && submission ? task.privateScore(submission) : undefined;
      store.setGrade(sample.id, { ...grade, family: sample.program && family(sample.program) }, privateScore);
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
    return this.#endedSeconds.splice(0);
  }
}
