import type { Checkpoints } from "./checkpoints.ts";
import type { Collected, RunContext, WarmStartData } from "./context.ts";
import type { Engine } from "./engine/index.ts";
import type { Generators } from "./generators/generators.ts";
import type { Grades } from "./grades.ts";
import type { Iterations } from "./iterations.ts";
import type { Phases } from "./phases.ts";
import type { DeviationLimits } from "./rl/deviation.ts";
import type { Rollout } from "./rollout/rollout.ts";
import type { RunFiles } from "./run-files.ts";
import type { LearnerServer } from "./server/server.ts";
import type { WaitOptions } from "./server/waiting.ts";

/** A run and its parts. A function names the parts that it uses: `Pick<Run, "store" | "phases">`. */
export interface Run extends RunContext {
  /** Generates and updates the policy. */
  readonly engine: Engine;
  /** Generate in the engine's place, on other machines. */
  readonly generators?: Generators | undefined;
  /** Launches executions: prompts, solutions, instrumented programs. */
  readonly rollout: Rollout;
  /** Leases executions to actors and takes their results. */
  readonly server: LearnerServer;
  /** Grades executions as they finish. */
  readonly grades: Grades;
  /** How far log-probs of generation and training may differ on the same weights. */
  readonly deviationLimits: DeviationLimits;
  /** `--replay`: batches and results come from another run's store, and no actor is used. */
  readonly recorded?: { batch(iteration: number): Collected } | undefined;

  /** The examples of a warm start that is not over. */
  readonly warmStartData?: WarmStartData | undefined;

  /** Begins and ends iterations. */
  readonly iterations: Iterations;
  /** Knows the learner's present phase, and where the run can be stopped. */
  readonly phases: Phases;
  /** When a wait for results gives up. */
  readonly waiting: WaitOptions;
  readonly checkpoints: Checkpoints;
  /** Writes metrics, summary, report and the best program. */
  readonly files: RunFiles;
}
