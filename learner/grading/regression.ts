/** Metrics of numbers, as defined by scikit-learn 1.x and scipy. NaN if they are undefined. */
import { mean, sum, sumOfSquares } from "./sums.ts";

// All loops run over typed arrays, because a callback for each row takes ten times as long.

function differences(truth: Float64Array, predicted: Float64Array): Float64Array {
  const errors = new Float64Array(truth.length);
  for (let i = 0; i < errors.length; i++) errors[i] = truth[i]! - predicted[i]!;
  return errors;
}

export function meanAbsoluteError(truth: Float64Array, predicted: Float64Array): number {
  const errors = differences(truth, predicted);
  for (let i = 0; i < errors.length; i++) errors[i] = Math.abs(errors[i]!);
  return mean(errors);
}

/** Root mean squared error: sqrt(mean (y - p)^2). */
export function rootMeanSquaredError(truth: Float64Array, predicted: Float64Array): number {
  return Math.sqrt(sumOfSquares(differences(truth, predicted)) / truth.length);
}

/** Root mean squared error of log(1 + value). Values must be above -1. */
export function rmsle(truth: Float64Array, predicted: Float64Array): number {
  const errors = new Float64Array(truth.length);
  for (let i = 0; i < errors.length; i++) {
    const [y, p] = [truth[i]!, predicted[i]!];
    // Computes log(1 + y) - log(1 + p) as one logarithm: as exact for close values, and half the work.
    const ratio = (y - p) / (1 + p);
    errors[i] = Math.abs(ratio) < 0.5 ? Math.log1p(ratio) : Math.log1p(y) - Math.log1p(p);
  }
  return Math.sqrt(sumOfSquares(errors) / truth.length);
}

/** Coefficient of determination: 1 - sum (y - p)^2 / sum (y - mean y)^2; for a constant truth 1 if all predictions are exact, else 0. */
export function r2(truth: Float64Array, predicted: Float64Array): number {
  if (truth.length < 2) return Number.NaN;
  const residual = sumOfSquares(differences(truth, predicted));
  const total = sumOfSquares(less(truth, mean(truth)));
  if (total === 0) return residual === 0 ? 1 : 0;
  return 1 - residual / total;
}

function less(values: Float64Array, center: number): Float64Array {
  const deviations = new Float64Array(values.length);
  for (let i = 0; i < deviations.length; i++) deviations[i] = values[i]! - center;
  return deviations;
}

/** Mean absolute percentage error: mean |y - p| / max(|y|, 2^-52), so 1 is 100 %. */
export function mape(truth: Float64Array, predicted: Float64Array): number {
  const errors = new Float64Array(truth.length);
  for (let i = 0; i < errors.length; i++)
    errors[i] = Math.abs(truth[i]! - predicted[i]!) / Math.max(Math.abs(truth[i]!), Number.EPSILON);
  return mean(errors);
}

/** Pearson's correlation, computed in scipy's steps. NaN if a side is constant or has fewer than two rows. */
export function pearson(truth: Float64Array, predicted: Float64Array): number {
  if (truth.length < 2 || isConstant(truth) || isConstant(predicted)) return Number.NaN;
  const [x, y] = [less(truth, mean(truth)), less(predicted, mean(predicted))];
  const [xNorm, yNorm] = [normOf(x), normOf(y)];
  for (let i = 0; i < x.length; i++) x[i] = ((x[i]! / xNorm) * y[i]!) / yNorm;
  const r = sum(x);
  return truth.length === 2 ? Math.round(r) : Math.max(-1, Math.min(1, r));
}

/** Returns the norm of the values. They are scaled before they are squared, so that squares neither overflow nor underflow. */
function normOf(values: Float64Array): number {
  let largest = 0;
  for (let i = 0; i < values.length; i++) {
    const size = Math.abs(values[i]!);
    if (size > largest) largest = size; // Math.max takes three times as long
  }
  const squares = new Float64Array(values.length);
  for (let i = 0; i < squares.length; i++) squares[i] = (values[i]! / largest) ** 2;
  return largest * Math.sqrt(sum(squares));
}

const isConstant = (values: Float64Array) => values.every((value) => value === values[0]);

/** Spearman's rank correlation: Pearson's correlation of the ranks; equal values share their mean rank. */
export function spearman(truth: Float64Array, predicted: Float64Array): number {
  return pearson(ranks(truth), ranks(predicted));
}

function ranks(values: Float64Array): Float64Array {
  const order = Uint32Array.from(values.keys()).sort((a, b) => values[a]! - values[b]!);
  const ranked = new Float64Array(values.length);
  for (let start = 0; start < order.length; ) {
    let end = start + 1;
    while (end < order.length && values[order[end]!] === values[order[start]!]) end++;
    for (let i = start; i < end; i++) ranked[order[i]!] = (start + 1 + end) / 2;
    start = end;
  }
  return ranked;
}
