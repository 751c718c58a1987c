/** The metrics that a grader can name: their inputs and which scores are better. */
import type { Grader } from "../../crds/trainingrun.ts";
import * as labels from "./labels.ts";
import * as probabilities from "./probabilities.ts";
import * as regression from "./regression.ts";
import { meanAveragePrecision, wordJaccard } from "./text-metrics.ts";

/** A target column's values by row. */
export type Values = Float64Array | readonly string[];
export type MetricName = Grader["metric"];

/** Options of a grader in addition to the metric. */
type Options = Pick<Grader, "k">;

export interface Metric {
  direction: "Higher" | "Lower";
  /** `labels` may be names; `binary` labels are 0 and 1; `integers` are whole numbers. */
  input: "numbers" | "aboveMinusOne" | "labels" | "binary" | "integers" | "texts";
  /** Predictions must lie in 0..1; with several columns, every row must add up to 1. */
  probabilities?: boolean;
  /** Least number of target columns if the columns are classes; default 1. */
  columns?: number;
  /**
   * @param truth, predicted [target column][row] @returns the score in the metric's own unit, NaN where it is undefined
   */
  score(truth: readonly Values[], predicted: readonly Values[], options: Options): number;
}

/** Mean over the columns of a metric for one column (scikit-learn's `uniform_average`). */
const columnMean =
  <Column>(metric: (truth: Column, predicted: Column) => number) =>
  (truth: readonly Column[], predicted: readonly Column[]) =>
    truth.reduce((sum, column, c) => sum + metric(column, predicted[c]!), 0) / truth.length;

/** Items that a ranking counts by default. */
const defaultK = 5;

export const metrics: Record<MetricName, Metric> = {
  MAE: { direction: "Lower", input: "numbers", score: columnMean(regression.meanAbsoluteError) },
  RMSE: { direction: "Lower", input: "numbers", score: columnMean(regression.rootMeanSquaredError) },
  RMSLE: { direction: "Lower", input: "aboveMinusOne", score: columnMean(regression.rmsle) },
  MAPE: { direction: "Lower", input: "numbers", score: columnMean(regression.mape) },
  R2: { direction: "Higher", input: "numbers", score: columnMean(regression.r2) },
  Pearson: { direction: "Higher", input: "numbers", score: columnMean(regression.pearson) },
  Spearman: { direction: "Higher", input: "numbers", score: columnMean(regression.spearman) },
  Accuracy: { direction: "Higher", input: "labels", score: columnMean(labels.accuracy) },
  BalancedAccuracy: { direction: "Higher", input: "labels", score: columnMean(labels.balancedAccuracy) },
  F1: { direction: "Higher", input: "binary", score: columnMean(labels.f1) },
  F1Macro: { direction: "Higher", input: "labels", score: columnMean(labels.f1Macro) },
  F1Micro: { direction: "Higher", input: "labels", score: columnMean(labels.f1Micro) },
  F1Weighted: { direction: "Higher", input: "labels", score: columnMean(labels.f1Weighted) },
  Jaccard: { direction: "Higher", input: "binary", score: columnMean(labels.jaccard) },
  QuadraticWeightedKappa: { direction: "Higher", input: "integers", score: columnMean(labels.quadraticWeightedKappa) },
  RocAuc: { direction: "Higher", input: "numbers", score: columnMean(probabilities.rocAuc) },
  RocAucOneVsOne: {
    direction: "Higher",
    input: "numbers",
    probabilities: true,
    columns: 2,
    score: probabilities.rocAucOneVsOne,
  },
  LogLoss: { direction: "Lower", input: "numbers", probabilities: true, score: probabilities.logLoss },
  Brier: { direction: "Lower", input: "numbers", probabilities: true, score: probabilities.brier },
  WordJaccard: { direction: "Higher", input: "texts", score: columnMean(wordJaccard) },
  MAPAtK: {
    direction: "Higher",
    input: "texts",
    score: (truth: (readonly string[])[], predicted: (readonly string[])[], { k = defaultK }) =>
      columnMean<readonly string[]>((t, p) => meanAveragePrecision(t, p, k))(truth, predicted),
  },
};

/** Returns the score of columns [target][row] in the metric's input form. NaN if it is undefined. */
export function scoreColumns(
  metric: MetricName,
  truth: readonly Values[],
  predicted: readonly Values[],
  options: Options = {},
): number {
  return metrics[metric].score(truth, predicted, options);
}
