import type { TrainingRunSpec } from "../crds/trainingrun.ts";
import type { WaitOptions } from "./server/waiting.ts";

/**
 * Returns when a wait for results gives up.
 *
 * @param awaitsActors whether somebody else creates the actors (`--stay`): the run then waits for them without a limit
 * @param signal ends the loop between two updates
 */
export function waitingOf(
  { tasks, learner }: TrainingRunSpec,
  awaitsActors: boolean,
  signal: AbortSignal,
): WaitOptions {
  const { leaseSeconds, stallSeconds } = learner;
  const idleSeconds = Math.max(...tasks.map((task) => task.executionTimeoutSeconds)) + leaseSeconds + stallSeconds;
  return { stallSeconds, idleSeconds: awaitsActors ? Number.POSITIVE_INFINITY : idleSeconds, signal };
}
