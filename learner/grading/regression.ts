/** Metrics of numbers, as scikit-learn 1.x and scipy define them; NaN where they are undefined. */
import { mean, sumOf, sumOfSquares } from "./sums.ts";

// Loops over typed arrays throughout: with a callback for each row they take ten times as long.

/** Mean absolute error: mean |y - p|. */
export function meanAbsoluteError(truth: Float64Array, predicted: Float64Array): number {
  const total = sumOf(truth.length, (errors, from) => {
    for (let i = 0; i < errors.length; i++) errors[i] = Math.abs(truth[from + i]! - predicted[from + i]!);
  });
  return total / truth.length;
}

/** Root mean squared error: sqrt(mean (y - p)^2). */
export function rootMeanSquaredError(truth: Float64Array, predicted: Float64Array): number {
  return Math.sqrt(squaredError(truth, predicted) / truth.length);
}

function squaredError(truth: Float64Array, predicted: Float64Array): number {
  return sumOfSquares(truth.length, (errors, from) => {
    for (let i = 0; i < errors.length; i++) errors[i] = truth[from + i]! - predicted[from + i]!;
  });
}

/** Root mean squared error of log(1 + value); values have to be above -1. */
export function rmsle(truth: Float64Array, predicted: Float64Array): number {
  const total = sumOfSquares(truth.length, (errors, from) => {
    for (let i = 0; i < errors.length; i++) {
      const [y, p] = [truth[from + i]!, predicted[from + i]!];
      // log(1 + y) - log(1 + p) as one logarithm, which is as exact where the two are close, and half the work.
      const ratio = (y - p) / (1 + p);
      errors[i] = Math.abs(ratio) < 0.5 ? Math.log1p(ratio) : Math.log1p(y) - Math.log1p(p);
    }
  });
  return Math.sqrt(total / truth.length);
}

/** Coefficient of determination: 1 - sum (y - p)^2 / sum (y - mean y)^2; of a constant truth 1 if met exactly, else 0. */
export function r2(truth: Float64Array, predicted: Float64Array): number {
  if (truth.length < 2) return Number.NaN;
  const center = mean(truth);
  const residual = squaredError(truth, predicted);
  const total = sumOfSquares(truth.length, (deviations, from) => {
    for (let i = 0; i < deviations.length; i++) deviations[i] = truth[from + i]! - center;
  });
  if (total === 0) return residual === 0 ? 1 : 0;
  return 1 - residual / total;
}

/** Mean absolute percentage error: mean |y - p| / max(|y|, 2^-52), so 1 is 100 %. */
export function mape(truth: Float64Array, predicted: Float64Array): number {
  const total = sumOf(truth.length, (errors, from) => {
    for (let i = 0; i < errors.length; i++) {
      const y = truth[from + i]!;
      errors[i] = Math.abs(y - predicted[from + i]!) / Math.max(Math.abs(y), Number.EPSILON);
    }
  });
  return total / truth.length;
}

/** Pearson's correlation, step by step as scipy computes it; NaN where a side is constant or there are fewer than two rows. */
export function pearson(truth: Float64Array, predicted: Float64Array): number {
  if (truth.length < 2 || isConstant(truth) || isConstant(predicted)) return Number.NaN;
  const [xMean, yMean] = [mean(truth), mean(predicted)];
  const [xNorm, yNorm] = [normOf(truth, xMean), normOf(predicted, yMean)];
  const r = sumOf(truth.length, (products, from) => {
    for (let i = 0; i < products.length; i++)
      products[i] = (((truth[from + i]! - xMean) / xNorm) * (predicted[from + i]! - yMean)) / yNorm;
  });
  return truth.length === 2 ? Math.round(r) : Math.max(-1, Math.min(1, r));
}

/** The norm of the values less `center`, scaled before they are squared, so that squares neither overflow nor vanish. */
function normOf(values: Float64Array, center: number): number {
  let largest = 0;
  for (let i = 0; i < values.length; i++) {
    const size = Math.abs(values[i]! - center);
    if (size > largest) largest = size; // Math.max takes three times as long
  }
  const squares = sumOf(values.length, (block, from) => {
    for (let i = 0; i < block.length; i++) {
      const scaled = (values[from + i]! - center) / largest;
      block[i] = scaled * scaled;
    }
  });
  return largest * Math.sqrt(squares);
}

const isConstant = (values: Float64Array) => values.every((value) => value === values[0]);

/** Spearman's rank correlation: Pearson's of the ranks, equal values sharing the mean of theirs. */
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
