/**
 * The rules of the twelve MLE-bench tasks, as openai/mle-bench (commit 783b15a) grades with pandas 2.2, scikit-learn 1.6 and scipy 1.15.
 * `mlebench.yaml` has each task's checks in order.
 */
import { type Column, isNumeric } from "./column.ts";
import type { Frame } from "./frame.ts";
import * as inputs from "./inputs.ts";
import { placesAmong } from "./label-places.ts";
import { type MetricName, scoreColumns } from "./metrics.ts";
import type { MleBenchTask } from "./mlebench-tasks.ts";
import { shownName } from "./name-twins.ts";
import { type Refusal, refuse } from "./reasons.ts";
import { roundExact, roundNumpy } from "./rounding.ts";
import { missingColumn, type Rules, wrongRows } from "./rules.ts";
import { firstWordless } from "./text-metrics.ts";

/** Most bytes of a submission to one of the twelve tasks; the largest of them needs 5 MB. */
export const maxSubmissionBytes = 64 * 2 ** 20;

const readers: Partial<Record<MetricName, ReturnType<Rules["reader"]>>> = {
  RocAuc: inputs.floats,
  Accuracy: inputs.labelsOrTexts,
  QuadraticWeightedKappa: inputs.kappaLabels,
  Pearson: inputs.numbers,
  RMSLE: inputs.floatsAboveMinusOne,
  LogLoss: inputs.numbers,
  WordJaccard: inputs.texts,
};

export function mleBenchRules(task: MleBenchTask): Rules {
  const { metric, idColumn, targetColumns } = task;
  return {
    ids: task.ids,
    wholeColumns: false,
    maxBytes: () => maxSubmissionBytes,
    checkAnswers: ({ names }) => {
      const extra = names.find((name) => name !== idColumn && !targetColumns.includes(name));
      if (extra !== undefined && (task.checks.includes("exactColumns") || task.checks.includes("shape")))
        throw new Error(`unexpected column ${extra}; the task has ids and targets alone`);
    },
    check: (frame, rows) => {
      for (const name of task.checks) {
        const refusal = checks[name]!(frame, task, rows);
        if (refusal) return refusal;
      }
      return undefined;
    },
    reader: (answers) => {
      const read = readers[metric]!;
      if (metric !== "Accuracy" && metric !== "QuadraticWeightedKappa") return read;
      const placesOf = placesAmong(answers[0]!);
      return (column, truth) => {
        const values = read(column, truth);
        return "reason" in values || !isNumeric(column) ? values : placesOf(column);
      };
    },
    checkRows: () => undefined,
    score: (truth, predicted) => {
      const wordless = metric === "WordJaccard" ? firstWordless(truth[0] as string[], predicted[0] as string[]) : -1;
      if (wordless >= 0) return refuse("noWords", { column: targetColumns[0]!, row: wordless + 1 });
      return scoreColumns(metric, truth, predicted);
    },
    round: task.rounding === "Numpy" ? roundNumpy : roundExact,
  };
}

/** numpy.isclose(sum, 1, atol=1e-6): the tolerance is atol + rtol, where rtol is 1e-5. */
const closeToOne = (sum: number) => Math.abs(sum - 1) <= 1e-6 + 1e-5;
/** `sum.round(6) == 1`. */
const roundsToOne = (sum: number) => Math.abs(sum * 1e6 - 1e6) <= 0.5;

const targets = (frame: Frame, task: MleBenchTask) => task.targetColumns.map((name) => frame.column(name)!);
/** All columns except the first, whatever their names. */
const allButFirst = (frame: Frame) => frame.names.slice(1).map((_, i) => frame.columnAt(i + 1));

const checks: Record<string, (frame: Frame, task: MleBenchTask, rows: number) => Refusal | undefined> = {
  idColumn: (frame, { idColumn }) => missingColumn(frame, [idColumn]),
  targetColumns: (frame, { targetColumns }) => missingColumn(frame, targetColumns),
  notEmpty: (frame) => (frame.rows === 0 ? refuse("noRows") : undefined),
  rowCount: (frame, _, rows) => wrongRows(frame, rows),
  exactColumns: (frame, { idColumn, targetColumns }) => {
    const names = [idColumn, ...targetColumns];
    const column = frame.names.find((name) => !names.includes(name));
    if (column !== undefined)
      return refuse("unexpectedColumn", { column: shownName(column), expected: names.join(",") });
    return missingColumn(frame, names);
  },
  shape: (frame, task, rows) => {
    const expected = task.targetColumns.length + 1;
    if (frame.names.length !== expected) return refuse("columnCount", { found: frame.names.length, expected });
    return wrongRows(frame, rows);
  },
  numeric: (frame, task) => notNumbers(targets(frame, task)),
  /** A missing value passes; the metric refuses it. */
  zeroToOneOrMissing: (frame, task) => outOfRange(targets(frame, task), (p) => p < 0 || p > 1),
  zeroToOne: (frame, task) => outOfRange(targets(frame, task), (p) => !(p >= 0 && p <= 1)),
  positionalZeroToOne: (frame) => outOfRange(allButFirst(frame), (p) => !(p >= 0 && p <= 1)),
  sumsCloseToOne: (frame, task) => wrongSums(targets(frame, task), closeToOne),
  positionalSumsCloseToOne: (frame) => wrongSums(allButFirst(frame), closeToOne),
  sumsRoundToOne: (frame, task) => wrongSums(targets(frame, task), roundsToOne),
};

function notNumbers(columns: readonly Column[]): Refusal | undefined {
  const column = columns.find((each) => !isNumeric(each));
  return column && inputs.wrongType(column);
}

function outOfRange(columns: readonly Column[], isOut: (value: number) => boolean): Refusal | undefined {
  const refusal = notNumbers(columns);
  if (refusal) return refusal;
  for (const { name, values } of columns.filter(isNumeric)) {
    const checked = inputs.within(values, name, (value) => !isOut(value), "in 0..1");
    if ("reason" in checked) return checked;
  }
  return undefined;
}

function wrongSums(columns: readonly Column[], isRight: (sum: number) => boolean): Refusal | undefined {
  const values = columns.filter(isNumeric).map((column) => column.values);
  return notNumbers(columns) ?? inputs.wrongSum(values, isRight);
}
