/** Valid, and yet earned by no model: flagged and counted, so that a policy that lives on them shows. */
import { type MetricName, metrics } from "./metrics.ts";

export const guardNames = ["sampleSubmission", "constant", "perfect"] as const;

/**
 * `sampleSubmission`: a copy of the sample submission. `constant`: every row has the same prediction. `perfect`: the best
 * score that the metric has, which on real data means that the answers were found, not predicted.
 */
export type Guard = (typeof guardNames)[number];

type Column = Float64Array | readonly string[];

/** @param predicted [target][row] @param sample the sample submission's, if there is one */
export function guardsOf(
  score: number,
  metric: MetricName,
  predicted: readonly Column[],
  sample: readonly Column[] | undefined,
): Guard[] {
  const found: Guard[] = [];
  if (sample && predicted.every((column, c) => column.every((value, row) => value === sample[c]![row])))
    found.push("sampleSubmission");
  const isConstant = (column: Column) => column.length > 1 && column.every((value) => value === column[0]);
  if (predicted.every(isConstant)) found.push("constant");
  if (Math.abs(score - (metrics[metric].direction === "Higher" ? 1 : 0)) <= 1e-12) found.push("perfect");
  return found;
}
