/**
 * Metrics over columns: `truth[c][i]` is the true value of target column c in row i, `predicted[c][i]` the submission's.
 * Each is defined as scikit-learn 1.x defines it; NaN where it is undefined (the caller makes that "no score").
 */
import type { Grader } from "../../crds/trainingrun.ts";

type Columns = readonly Float64Array[];
export type MetricName = Grader["metric"];

export interface Metric {
  direction: "Higher" | "Lower";
  /** Labels are compared as text, so that a target may be a name. */
  labels?: boolean;
  /** Predictions must lie in 0..1, and with several columns every row must add up to 1. */
  probabilities?: boolean;
  /** @returns the score in the metric's own unit, NaN where it is undefined */
  score: (truth: Columns, predicted: Columns) => number;
}

/** Mean over the columns of a metric of one column (scikit-learn's `uniform_average`). */
const overColumns =
  (metric: (truth: Float64Array, predicted: Float64Array) => number) => (truth: Columns, predicted: Columns) =>
    truth.reduce((sum, column, c) => sum + metric(column, predicted[c]!), 0) / truth.length;

/** Mean absolute error: mean |y - p|. */
export function meanAbsoluteError(truth: Float64Array, predicted: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < truth.length; i++) sum += Math.abs(truth[i]! - predicted[i]!);
  return sum / truth.length;
}

/** Root mean squared error: sqrt(mean (y - p)^2). */
export function rootMeanSquaredError(truth: Float64Array, predicted: Float64Array): number {
  return Math.sqrt(squaredError(truth, predicted) / truth.length);
}

/** Coefficient of determination: 1 - sum (y - p)^2 / sum (y - mean y)^2; of a constant truth 1 if met exactly, else 0. */
export function r2(truth: Float64Array, predicted: Float64Array): number {
  if (truth.length < 2) return Number.NaN;
  const residual = squaredError(truth, predicted);
  const mean = truth.reduce((sum, y) => sum + y, 0) / truth.length;
  let total = 0;
  for (const y of truth) total += (y - mean) ** 2;
  if (total === 0) return residual === 0 ? 1 : 0;
  return 1 - residual / total;
}

/** Share of rows whose label is right. */
export function accuracy(truth: Float64Array, predicted: Float64Array): number {
  let right = 0;
  for (let i = 0; i < truth.length; i++) if (truth[i] === predicted[i]) right++;
  return right / truth.length;
}

/**
 * Logarithmic loss: -mean log p[true class], p clipped to [2^-52, 1 - 2^-52] as scikit-learn clips float64 (so 36.04 at
 * worst). One column: the chance of class 1. Several: one column a class, the truth one-hot.
 */
export function logLoss(truth: Columns, predicted: Columns): number {
  const rows = truth[0]!.length;
  const log = (p: number) => Math.log(Math.min(Math.max(p, Number.EPSILON), 1 - Number.EPSILON));
  let sum = 0;
  for (let i = 0; i < rows; i++) {
    if (truth.length === 1) sum += log(truth[0]![i] === 1 ? predicted[0]![i]! : 1 - predicted[0]![i]!);
    else for (let c = 0; c < truth.length; c++) if (truth[c]![i] === 1) sum += log(predicted[c]![i]!);
  }
  return -sum / rows;
}

/** Area under the ROC curve: the chance that a row of class 1 ranks above one of class 0, ties half. NaN with one class. */
export function rocAuc(truth: Float64Array, predicted: Float64Array): number {
  const order = Uint32Array.from(truth.keys()).sort((a, b) => predicted[a]! - predicted[b]!);
  let rankSum = 0;
  let positives = 0;
  for (let start = 0; start < order.length; ) {
    let end = start + 1;
    while (end < order.length && predicted[order[end]!] === predicted[order[start]!]) end++;
    // Ranks are counted from 1; equal predictions share the mean of theirs.
    const rank = (start + 1 + end) / 2;
    for (let i = start; i < end; i++)
      if (truth[order[i]!] === 1) {
        rankSum += rank;
        positives++;
      }
    start = end;
  }
  const negatives = truth.length - positives;
  return (rankSum - (positives * (positives + 1)) / 2) / (positives * negatives);
}

function squaredError(truth: Float64Array, predicted: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < truth.length; i++) sum += (truth[i]! - predicted[i]!) ** 2;
  return sum;
}

/** The metrics that a grader can name. */
export const metrics: Record<MetricName, Metric> = {
  MAE: { direction: "Lower", score: overColumns(meanAbsoluteError) },
  RMSE: { direction: "Lower", score: overColumns(rootMeanSquaredError) },
  R2: { direction: "Higher", score: overColumns(r2) },
  Accuracy: { direction: "Higher", labels: true, score: overColumns(accuracy) },
  LogLoss: { direction: "Lower", probabilities: true, score: logLoss },
  RocAuc: { direction: "Higher", score: overColumns(rocAuc) },
};
