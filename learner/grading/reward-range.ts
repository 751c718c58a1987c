/** Estimates a range of scores for a task without one, so that rewards distinguish programs whatever the metric's unit (dollars, years). */
import type { Grader, RewardRange } from "../../crds/trainingrun.ts";
import { type Answers, gradeSubmission } from "./grade.ts";
import { metrics, type Values } from "./metrics.ts";

export interface EstimatedRange {
  range: RewardRange;
  /** One line: the source of each end's score. */
  from: string;
}

/** How many of a column's most frequent values are tried as its constant prediction. */
const triedValues = 20;
/** How many quantiles are tried too: the best constant for a metric such as MAPE is close to one of them. */
const triedQuantiles = 20;

/**
 * Estimates `rewardRange` from the answers. `worst` is the score of the best constant prediction, so a program that learns anything from
 * the features earns more than 0. If the metric has no score for a constant (a correlation), `worst` is the sample submission's score, else
 * 0. `best` is the score of the answers themselves, as far as `bounds` allows them.
 *
 * @param sample the sample submission's bytes, if there is one
 * @returns undefined if one constant predicts all answers, so there is no range
 */
export function estimateRewardRange(answers: Answers, sample?: Buffer): EstimatedRange | undefined {
  const grader = answers.grader as Grader;
  const { publicTruth: truth } = answers;
  const scoreOf = (predicted: readonly Values[]): number => {
    const score = answers.rules.checkRows(predicted) ?? answers.rules.score(truth, predicted);
    return typeof score === "number" ? score : Number.NaN;
  };
  const isBetter = (a: number, b: number) => (grader.direction === "Higher" ? a > b : a < b);
  const best = scoreOf(truth.map((column) => withinBounds(column, grader)));
  const constant = constantsOf(truth, grader)
    .map(scoreOf)
    .filter(Number.isFinite)
    .reduce<number | undefined>(
      (most, score) => (most === undefined || isBetter(score, most) ? score : most),
      undefined,
    );
  const copied = sample && gradeSubmission(sample, answers).scoreRaw;
  const worst = constant ?? copied ?? 0;
  const what = constant !== undefined ? "the best constant prediction" : "the sample submission";
  const worstFrom = worst === constant || worst === copied ? `score of ${what}` : "no correlation";
  if (!Number.isFinite(best) || !isBetter(best, worst)) return undefined;
  return {
    range: { worst, best },
    from: `estimated from the answers. worst: ${worstFrom}; best: score of the answers themselves`,
  };
}

/** Returns constant predictions [candidate][target][row]: each target's mean, quantiles and most frequent values. */
function constantsOf(truth: readonly Values[], grader: Grader): Values[][] {
  const { input } = metrics[grader.metric];
  const isDistance = input === "numbers" || input === "aboveMinusOne";
  const values = truth.map((column) =>
    column instanceof Float64Array && isDistance ? statisticsOf(column) : mostFrequent(column),
  );
  const candidates = Math.max(...values.map(({ length }) => length));
  return Array.from({ length: candidates }, (_, i) =>
    truth.map((column, c) => {
      const value = values[c]![Math.min(i, values[c]!.length - 1)]!;
      const filled =
        typeof value === "number"
          ? new Float64Array(column.length).fill(value)
          : new Array<string>(column.length).fill(value);
      return withinBounds(filled, grader);
    }),
  );
}

function statisticsOf(column: Float64Array): number[] {
  const sorted = column.toSorted();
  const mean = (measure: (value: number) => number) =>
    column.reduce((sum, value) => sum + measure(value), 0) / column.length;
  const quantile = (_: unknown, i: number) => sorted[Math.round((i / triedQuantiles) * (sorted.length - 1))]!;
  const logMean = Math.expm1(mean(Math.log1p)); // best constant for RMSLE; NaN if a value is below -1
  const quantiles = Array.from({ length: triedQuantiles + 1 }, quantile);
  return [mean((value) => value), ...quantiles, ...(Number.isFinite(logMean) ? [logMean] : [])];
}

function mostFrequent(column: Values): (number | string)[] {
  const counts = new Map<number | string, number>();
  for (const value of column) counts.set(value, (counts.get(value) ?? 0) + 1);
  const ordered = [...counts].sort(([, a], [, b]) => b - a);
  return ordered.slice(0, triedValues).map(([value]) => value);
}

function withinBounds(column: Values, { metric, bounds }: Grader): Values {
  const { input } = metrics[metric];
  // Bounds are for numbers; labels are places here.
  if (!(column instanceof Float64Array) || !bounds || input === "labels" || input === "integers") return column;
  const { least = -Infinity, most = Infinity } = bounds;
  return column.map((value) => Math.min(most, Math.max(least, value)));
}
