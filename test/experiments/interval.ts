import { uniforms } from "../../learner/rng.ts";
import { mean } from "../bench/bootstrap.ts";

export interface Interval {
  mean: number;
  low: number;
  high: number;
}

/** 95 % interval of the mean by the percentile bootstrap. For paired seeds, `values` are the differences. */
export function interval(values: readonly number[], draws = 2000): Interval {
  const next = uniforms(0, "interval");
  const means = Array.from({ length: draws }, () =>
    mean(values.map(() => values[Math.floor(next() * values.length)]!)),
  );
  means.sort((a, b) => a - b);
  return { mean: mean(values), low: means[Math.floor(0.025 * draws)]!, high: means[Math.ceil(0.975 * draws) - 1]! };
}
