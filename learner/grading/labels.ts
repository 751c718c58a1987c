/** Metrics of class labels, as defined by scikit-learn 1.x. Labels are numbers, not necessarily whole ones. */

/** Number of rows with a label in the truth, in the prediction, and in both. */
interface Counts {
  truth: number;
  predicted: number;
  both: number;
}

function countLabels(truth: Float64Array, predicted: Float64Array): Map<number, Counts> {
  const counts = new Map<number, Counts>();
  const meaning = (label: number) => {
    let found = counts.get(label);
    if (!found) {
      found = { truth: 0, predicted: 0, both: 0 };
      counts.set(label, found);
    }
    return found;
  };
  for (let i = 0; i < truth.length; i++) {
    // A map treats 0 and -0 as equal.
    meaning(truth[i]!).truth++;
    meaning(predicted[i]!).predicted++;
    if (truth[i] === predicted[i]) meaning(truth[i]!).both++;
  }
  return counts;
}

/** Share of rows with the right label. */
export function accuracy(truth: Float64Array, predicted: Float64Array): number {
  let right = 0;
  for (let i = 0; i < truth.length; i++) if (truth[i] === predicted[i]) right++;
  return right / truth.length;
}

/** Mean recall over the truth's labels. */
export function balancedAccuracy(truth: Float64Array, predicted: Float64Array): number {
  const labels = [...countLabels(truth, predicted).values()].filter((count) => count.truth > 0);
  return labels.reduce((sum, count) => sum + count.both / count.truth, 0) / labels.length;
}

/** 2 tp / (2 tp + fp + fn); 0 for 0 / 0. */
const f1Of = ({ truth, predicted, both }: Counts) => (truth + predicted === 0 ? 0 : (2 * both) / (truth + predicted));

const noCounts: Counts = { truth: 0, predicted: 0, both: 0 };

export const f1 = (truth: Float64Array, predicted: Float64Array): number =>
  f1Of(countLabels(truth, predicted).get(1) ?? noCounts);

/** Mean F1 over the labels of both sides. */
export function f1Macro(truth: Float64Array, predicted: Float64Array): number {
  const labels = [...countLabels(truth, predicted).values()];
  return labels.reduce((sum, count) => sum + f1Of(count), 0) / labels.length;
}

/** F1 of the counts of all labels together; equals the accuracy because every row has one label. */
export const f1Micro = accuracy;

/** Mean F1 over the labels, weighted by their rows in the truth. */
export function f1Weighted(truth: Float64Array, predicted: Float64Array): number {
  const labels = [...countLabels(truth, predicted).values()];
  return labels.reduce((sum, count) => sum + count.truth * f1Of(count), 0) / truth.length;
}

/** Jaccard index of label 1, tp / (tp + fp + fn); 0 for 0 / 0. */
export function jaccard(truth: Float64Array, predicted: Float64Array): number {
  const count = countLabels(truth, predicted).get(1) ?? noCounts;
  const either = count.truth + count.predicted - count.both;
  return either === 0 ? 0 : count.both / either;
}

/**
 * Cohen's kappa with quadratic weights, 1 - sum w o / sum w e. The weight of two labels is the squared distance of their indices among the
 * sorted labels of both sides. NaN if both sides have one label.
 */
export function quadraticWeightedKappa(truth: Float64Array, predicted: Float64Array): number {
  const labels = Float64Array.from(countLabels(truth, predicted).keys()).sort();
  // Indices relative to the middle keep the sums below small: sum w e = sum i^2 + sum j^2 - 2 sum i sum j / n.
  const middle = Math.floor(labels.length / 2);
  const places = new Map(Array.from(labels, (label, place) => [label, place - middle]));
  let [observed, a, b, aa, bb] = [0, 0, 0, 0, 0];
  for (let row = 0; row < truth.length; row++) {
    const [i, j] = [places.get(truth[row]!)!, places.get(predicted[row]!)!];
    observed += (i - j) ** 2;
    a += i;
    b += j;
    aa += i * i;
    bb += j * j;
  }
  return 1 - observed / (aa + bb - (2 * a * b) / truth.length);
}
