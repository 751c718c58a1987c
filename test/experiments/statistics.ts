/** Statistics of a few seeds: means with bootstrap intervals, and differences of arms with the same seeds. */
import { uniforms } from "../../learner/engine/model/random.ts";
import { mean, percentileIntervals } from "../../learner/evaluation/bootstrap.ts";

export { mean } from "../../learner/evaluation/bootstrap.ts";

/** With fewer seeds, results are shown without a claim. */
export const LEAST_SEEDS = 5;

export interface Estimate {
  /** Number of seeds. */
  n: number;
  mean: number;
  /** Percentile bootstrap over seeds, 95 %; null for fewer than `LEAST_SEEDS`, because it would be far too narrow. */
  interval: [low: number, high: number] | null;
}

/** @param values one per seed; the mean of none is NaN */
export function estimate(values: readonly number[]): Estimate {
  if (values.length === 0) return { n: 0, mean: Number.NaN, interval: null };
  const { center } = percentileIntervals(values, (drawn) => ({ center: mean(drawn) }), { seed: 0 });
  return { n: values.length, mean: mean(values), interval: values.length >= LEAST_SEEDS ? center : null };
}

/** A value for each seed that has one. */
type BySeed = ReadonlyMap<number, number>;

export interface Difference extends Estimate {
  /** Seeds that both arms have. */
  seeds: number[];
  each: number[];
}

/** `treated` minus `control`, seed by seed. Seeds that only one of them has are left out. */
export function pairedDifference(treated: BySeed, control: BySeed): Difference {
  const seeds = [...treated.keys()].filter((seed) => control.has(seed)).sort((a, b) => a - b);
  const each = seeds.map((seed) => treated.get(seed)! - control.get(seed)!);
  return { ...estimate(each), seeds, each };
}

export type Verdict = "higher" | "lower" | "no difference seen" | "too few seeds";

/** Returns whether the interval is on one side of 0. */
export function verdictOf({ n, interval }: Estimate): Verdict {
  if (n < LEAST_SEEDS || interval === null) return "too few seeds";
  if (interval[0] > 0) return "higher";
  return interval[1] < 0 ? "lower" : "no difference seen";
}

/** Returns e.g. `0.31 [0.24, 0.38]`; without an interval `0.31 (2 seeds)`. */
export function show({ n, mean: center, interval }: Estimate, digits = 2): string {
  if (n === 0) return "-";
  if (interval === null) return `${center.toFixed(digits)} (${n} ${n === 1 ? "seed" : "seeds"})`;
  return `${center.toFixed(digits)} [${interval.map((end) => end.toFixed(digits)).join(", ")}]`;
}

/**
 * Returns the one-sided 95 % lower bound of mean(treated) - mean(control) by the bootstrap: draws runs with replacement, and values within
 * a run, because values of one run are not independent.
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
