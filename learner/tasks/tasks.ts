import { ManifestError, type Task as TaskSpec, type TrainingRunSpec } from "../../crds/trainingrun.ts";
import { limitsOfTask } from "../../proto/execution.ts";
import { rewardOrderFault } from "../grading/reward.ts";
import { openTask, type Task } from "./task.ts";

/** The tasks of a run in the manifest's order. */
export class Tasks {
  readonly all: readonly Task[];
  readonly #byName: ReadonlyMap<string, Task>;

  constructor(all: readonly Task[]) {
    this.all = all;
    this.#byName = new Map(all.map((task) => [task.name, task]));
  }

  /** @throws Error if the run has no such task */
  named(name: string): Task {
    const task = this.#byName.get(name);
    if (!task) throw new Error(`task ${name} is not one of the run's: ${this.names.join(", ")}`);
    return task;
  }

  get names(): string[] {
    return [...this.#byName.keys()];
  }

  /** The run has several tasks, so its figures are by task. */
  get areSeveral(): boolean {
    return this.all.length > 1;
  }

  /** Seconds that the slowest of their programs may run. */
  get longestSeconds(): number {
    return Math.max(...this.all.map(({ spec }) => spec.executionTimeoutSeconds));
  }

  /** Returns the limits in a lease. Executions of a removed task are never leased again, so its limits do not matter. */
  limitsOf(name: string) {
    const { spec, submissionBytes } = this.#byName.get(name) ?? this.all[0]!;
    return { ...limitsOfTask(spec), submissionBytes };
  }
}

/**
 * Opens the folder of each task. Estimated reward ranges become part of `spec.tasks`.
 *
 * @param directories one for each task, in the manifest's order
 * @param begun tasks that already have samples: no range is estimated for them, so that their rewards keep their meaning
 * @throws ManifestError | TaskError in one line that names the task
 */
export function openTasks(
  directories: readonly string[],
  spec: Pick<TrainingRunSpec, "tasks" | "algorithm">,
  begun: ReadonlySet<string> = new Set(),
): Tasks {
  const { tasks, algorithm } = spec;
  if (directories.length !== tasks.length)
    throw new ManifestError([`spec.tasks holds ${tasks.length}, but --task-dir is given ${directories.length} times`]);
  const opened = tasks.map((task: TaskSpec, index) => {
    const it = openTask(directories[index]!, task, { estimateRange: !begun.has(task.name) });
    const fault = rewardOrderFault(algorithm, it.rewardRules);
    if (fault !== undefined) throw new ManifestError([tasks.length > 1 ? `task ${it.name}: ${fault}` : fault]);
    if (it.rewardRangeFrom !== undefined) task.grader = it.grader;
    return it;
  });
  return new Tasks(opened);
}
