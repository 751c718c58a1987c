import type { Stopping } from "../crds/trainingrun.ts";
import type { IterationMetrics } from "./metrics/iteration.ts";

type Progress = Pick<IterationMetrics, "iteration" | "meanReward" | "elapsedSeconds">;

/**
 * Returns why the run is over after the newest of `rows`, or undefined if it goes on. The rules of `spec.stopping`: all
 * iterations are done, the deadline has passed, or the run has converged: the best mean reward of the last `window`
 * iterations exceeds the best before them by at most `tolerance`.
 */
export function reasonToStop(rows: readonly Progress[], stopping: Stopping): string | undefined {
  const newest = rows.at(-1);
  if (newest === undefined) return undefined;
  if (newest.iteration >= stopping.iterations)
    return `${stopping.iterations === 1 ? "the only iteration is" : `all ${stopping.iterations} iterations are`} done (stopping.iterations)`;
  if (stopping.deadlineSeconds !== undefined && newest.elapsedSeconds >= stopping.deadlineSeconds) {
    return `the deadline of ${stopping.deadlineSeconds} s has passed (stopping.deadlineSeconds)`;
  }
  if (stopping.convergence !== undefined) {
    const { window, tolerance } = stopping.convergence;
    const rewards = rows.map((row) => row.meanReward ?? Number.NEGATIVE_INFINITY);
    if (rewards.length > window) {
      const before = Math.max(...rewards.slice(0, -window));
      const recent = Math.max(...rewards.slice(-window));
      if (recent <= before + tolerance) {
        return `the mean reward has not risen by more than ${tolerance} in ${window} iterations (stopping.convergence)`;
      }
    }
  }
  return undefined;
}
