/** Metrics of probabilities and of ranking scores, as defined by scikit-learn 1.x. NaN if they are undefined. */
import { mean, sum } from "./sums.ts";

type Columns = readonly Float64Array[];

/**
 * Logarithmic loss: -mean log p[true class], with p clipped to [2^-52, 1 - 2^-52] as in scikit-learn (at most 36.04). One column: the
 * probability of class 1. Several: one column per class, the truth one-hot.
 */
export function logLoss(truth: Columns, predicted: Columns): number {
  const log = (p: number) => Math.log(Math.min(Math.max(p, Number.EPSILON), 1 - Number.EPSILON));
  const losses = new Float64Array(truth[0]!.length);
  if (truth.length === 1)
    for (let i = 0; i < losses.length; i++)
      losses[i] = -log(truth[0]![i] === 1 ? predicted[0]![i]! : 1 - predicted[0]![i]!);
  else
    for (const [c, column] of truth.entries())
      for (let i = 0; i < losses.length; i++) if (column[i] === 1) losses[i]! -= log(predicted[c]![i]!);
  return mean(losses);
}

/**
 * Area under the ROC curve: the probability that a row of class 1 ranks above one of class 0; ties count half. NaN with one class. Summed
 * like scikit-learn, trapezoid by trapezoid, so that a tie in the fifth decimal is rounded alike.
 */
export function rocAuc(truth: Float64Array, predicted: Float64Array): number {
  let ones = 0;
  for (let i = 0; i < truth.length; i++) if (truth[i] === 1) ones++;
  const zeros = truth.length - ones;
  if (ones === 0 || zeros === 0) return Number.NaN;
  const { falses, trues } = withoutMiddles(rocPoints(truth, predicted, ones));
  const areas = new Float64Array(trues.length - 1);
  for (let i = 0; i < areas.length; i++) {
    const width = falses[i + 1]! / zeros - falses[i]! / zeros;
    areas[i] = (width * (trues[i + 1]! / ones + trues[i]! / ones)) / 2;
  }
  return sum(areas);
}

/**
 * Returns the ROC curve's points: the number of rows of class 0 and of class 1 with at least a given score, from the highest score down.
 */
function rocPoints(truth: Float64Array, predicted: Float64Array, ones: number) {
  const positives = new Float64Array(ones);
  const negatives = new Float64Array(truth.length - ones);
  for (let i = 0, p = 0, n = 0; i < truth.length; i++)
    if (truth[i] === 1) positives[p++] = predicted[i]!;
    else negatives[n++] = predicted[i]!;
  positives.sort();
  negatives.sort();
  const falses = new Float64Array(truth.length + 1);
  const trues = new Float64Array(truth.length + 1);
  let [p, n, points] = [positives.length - 1, negatives.length - 1, 1];
  while (p >= 0 || n >= 0) {
    const score = n < 0 || (p >= 0 && positives[p]! > negatives[n]!) ? positives[p]! : negatives[n]!;
    while (p >= 0 && !(positives[p]! < score)) p--;
    while (n >= 0 && !(negatives[n]! < score)) n--;
    falses[points] = negatives.length - 1 - n;
    trues[points] = positives.length - 1 - p;
    points++;
  }
  return { falses: falses.subarray(0, points), trues: trues.subarray(0, points) };
}

/** Removes points half-way between their neighbours (`drop_intermediate`). */
function withoutMiddles({ falses, trues }: ReturnType<typeof rocPoints>) {
  let kept = 0;
  let [beforeFalses, beforeTrues] = [0, 0];
  for (let i = 0; i < falses.length; i++) {
    const [here, there] = [falses[i]!, trues[i]!];
    const isEnd = i < 2 || i === falses.length - 1;
    const bends =
      isEnd || falses[i + 1]! - 2 * here + beforeFalses !== 0 || trues[i + 1]! - 2 * there + beforeTrues !== 0;
    [beforeFalses, beforeTrues] = [here, there];
    if (!bends) continue;
    falses[kept] = here;
    trues[kept] = there;
    kept++;
  }
  return { falses: falses.subarray(0, kept), trues: trues.subarray(0, kept) };
}

/** Mean area under the ROC curve over ordered pairs of classes, within a pair's rows (Hand and Till 2001). The truth is one-hot. */
export function rocAucOneVsOne(truth: Columns, predicted: Columns): number {
  const areas: number[] = [];
  for (let a = 0; a < truth.length; a++)
    for (let b = 0; b < truth.length; b++) {
      if (a === b) continue;
      const ofPair = (column: Float64Array) => column.filter((_, i) => truth[a]![i] === 1 || truth[b]![i] === 1);
      areas.push(rocAuc(ofPair(truth[a]!), ofPair(predicted[a]!)));
    }
  return areas.reduce((sum, area) => sum + area, 0) / areas.length;
}

/** Brier score, the mean over rows of sum (y - p)^2 over classes; for two classes half of it, as for one column. */
export function brier(truth: Columns, predicted: Columns): number {
  const errors = new Float64Array(truth[0]!.length);
  for (const [c, column] of truth.entries())
    for (let i = 0; i < errors.length; i++) errors[i]! += (column[i]! - predicted[c]![i]!) ** 2;
  return mean(errors) / (truth.length === 2 ? 2 : 1);
}
