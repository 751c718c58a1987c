import { uniforms } from "../../learner/rng.ts";

/**
 * One-sided 95 % lower bound of mean(treated) - mean(control) by the bootstrap: runs are drawn with replacement, and
 * within a run its values, because values of one run are not independent.
 *
 * @param treated one list of values per run
 */
export function lowerBound(treated: number[][], control: number[][], draws = 10_000): number {
  const next = uniforms(0, "bootstrap");
  const pick = <T>(values: readonly T[]) => values[Math.floor(next() * values.length)]!;
  const redrawn = (runs: number[][]) => mean(runs.map(() => pick(runs)).map((run) => mean(run.map(() => pick(run)))));
  const differences = Array.from({ length: draws }, () => redrawn(treated) - redrawn(control));
  return differences.sort((a, b) => a - b)[Math.floor(0.05 * draws)]!;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
