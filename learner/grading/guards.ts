/** Flags valid submissions that no model produced. They are counted, so that a policy that relies on them is noticed. */
import { type MetricName, metrics, type Values } from "./metrics.ts";

export const guardNames = ["sampleSubmission", "constant", "perfect"] as const;

/**
 * `sampleSubmission`: a copy of the sample submission. `constant`: every row has the same prediction. Both also apply if a few rows differ,
 * or if all differ by next to nothing. `perfect`: the metric's best score, so the answers were found, not predicted.
 */
export type Guard = (typeof guardNames)[number];

/** Rows that may differ in a copy: at most this share of all rows, but at least one; */
const DIFFERENT_SHARE = 0.01;
/** and at most this share of the rows whose answer differs from the most frequent answer. */
const ANSWERED_SHARE = 0.1;
/** For metrics of distance, values count as equal if they differ by less than this share of the answers' spread. */
const TOLERANCE = 1e-3;
/** Metrics of labels, texts and orders have no distance: two values are either equal or not. */
const DISTANCES: readonly MetricName[] = ["MAE", "RMSE", "RMSLE", "MAPE", "R2", "LogLoss", "Brier"];

/** @param predicted, truth [target][row] @param sample the sample submission's columns, if there is one */
export function guardsOf(
  score: number,
  metric: MetricName,
  predicted: readonly Values[],
  truth: readonly Values[],
  sample: readonly Values[] | undefined,
): Guard[] {
  const { fewRows, tolerances } = factsOf(truth);
  const rows = predicted[0]!.length;
  const tolerance = (c: number) => (DISTANCES.includes(metric) ? tolerances[c]! : 0);
  const isNearly = (other: (c: number, row: number) => number | string) => {
    let different = 0;
    for (let row = 0; row < rows && different <= fewRows; row++)
      if (!predicted.every((column, c) => isAlike(column[row]!, other(c, row), tolerance(c)))) different++;
    return different <= fewRows;
  };
  const found: Guard[] = [];
  if (sample && isNearly((c, row) => sample[c]![row]!)) found.push("sampleSubmission");
  const middles = predicted.map(middle);
  if (rows > 1 && isNearly((c) => middles[c]!)) found.push("constant");
  if (Math.abs(score - (metrics[metric].direction === "Higher" ? 1 : 0)) <= 1e-12) found.push("perfect");
  return found;
}

function isAlike(one: number | string, other: number | string, tolerance: number): boolean {
  return one === other || Math.abs((one as number) - (other as number)) <= tolerance;
}

const known = new WeakMap<readonly Values[], ReturnType<typeof newFacts>>();

function factsOf(truth: readonly Values[]) {
  const facts = known.get(truth) ?? newFacts(truth);
  known.set(truth, facts);
  return facts;
}

/**
 * Returns `fewRows`, the number of rows that may differ in a copy, and each target column's tolerance, 0 for texts. If answers
 * hardly vary, honest predictions hardly vary either, so fewer rows may differ.
 */
function newFacts(truth: readonly Values[]) {
  const rows = truth[0]!.length;
  const rowTexts =
    truth.length === 1 ? truth[0]! : Array.from({ length: rows }, (_, row) => truth.map((c) => c[row]).join("\u0000"));
  const varied = rows - mostFrequent(rowTexts).count;
  const fewRows = Math.floor(Math.min(Math.max(1, rows * DIFFERENT_SHARE), varied * ANSWERED_SHARE));
  const tolerances = truth.map((column) => (column instanceof Float64Array ? TOLERANCE * spread(column) : 0));
  return { fewRows, tolerances };
}

/** Returns the interquartile range, which a few huge values do not stretch; if it is 0, the standard deviation. */
function spread(values: Float64Array): number {
  const sorted = values.toSorted();
  const range = sorted[Math.floor(0.75 * (sorted.length - 1))]! - sorted[Math.floor(0.25 * (sorted.length - 1))]!;
  if (range > 0) return range;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
}

/** Returns the value that nearly all rows share, if they do: the median of numbers, the most frequent text. */
function middle(column: Values): number | string {
  if (column instanceof Float64Array) return column.toSorted()[column.length >> 1]!;
  return mostFrequent(column).value;
}

function mostFrequent(values: Values): { value: number | string; count: number } {
  const counts = new Map<number | string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  let most = { value: "" as number | string, count: 0 };
  for (const [value, count] of counts) if (count > most.count) most = { value, count };
  return most;
}
