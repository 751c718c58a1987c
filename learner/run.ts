import type { TrainingRunSpec } from "../crds/trainingrun.ts";
import type { Checkpoints } from "./checkpoints.ts";
import type { Engine } from "./engine/engine.ts";
import type { Grades } from "./grades.ts";
import type { Iterations } from "./iterations.ts";
import type { Phases } from "./phases.ts";
import type { Collected, RunProgress } from "./progress.ts";
import type { DeviationLimits } from "./rl/deviation.ts";
import type { Rollout } from "./rollout/rollout.ts";
import type { RunFiles } from "./run-files.ts";
import type { LearnerServer } from "./server/server.ts";
import type { WaitOptions } from "./server/waiting.ts";
import type { Store } from "./store/store.ts";
import type { Task } from "./tasks/task.ts";

/** A run as it goes. Whoever works on it names the parts that it uses, `Pick<Run, "store" | "phases">`. */
export interface Run {
  /** The run folder. */
  readonly directory: string;
  readonly spec: TrainingRunSpec;
  /** What the programs are to solve, with the grader that scores them. */
  readonly task: Task;

  /** Generates and updates the policy. */
  readonly engine: Engine;
  /** Launches executions: prompts, solutions, instrumented programs. */
  readonly rollout: Rollout;
  /** Through which actors lease them. */
  readonly server: LearnerServer;
  readonly grades: Grades;
  /** How far log-probs of generation and training may be apart on the same weights. */
  readonly deviationLimits: DeviationLimits;
  /** `--replay`: batches and results come from here, no actor is asked. */
  readonly recorded?: { batch(iteration: number): Collected } | undefined;

  /** How far the run is. */
  readonly progress: RunProgress;
  readonly phases: Phases;
  readonly iterations: Iterations;
  /** For every wait for results: what does not end by itself ends the wait. */
  readonly waiting: WaitOptions;

  /** Samples, executions and results, on the disk. */
  readonly store: Store;
  readonly checkpoints: Checkpoints;
  /** What the run shows of itself. */
  readonly files: RunFiles;
}

/**
 * @param awaitsActors whether somebody else makes the actors (`--stay`): they are waited for as long as it takes
 * @param signal ends the loop between two updates
 */
export function waitingOf(
  { tasks, learner }: TrainingRunSpec,
  awaitsActors: boolean,
  signal: AbortSignal,
): WaitOptions {
  const { leaseSeconds, stallSeconds } = learner;
  const idleSeconds = tasks[0].executionTimeoutSeconds + leaseSeconds + stallSeconds;
  return { stallSeconds, idleSeconds: awaitsActors ? Number.POSITIVE_INFINITY : idleSeconds, signal };
}
