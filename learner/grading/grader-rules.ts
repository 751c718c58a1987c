/** The rules of tasks that name a metric: bundled tasks and a user's own. */
import type { Grader } from "../../crds/trainingrun.ts";
import { type Column, isNumeric } from "./column.ts";
import { floatsAboveMinusOne, integerLabels, numbers, texts, within, wrongSum } from "./inputs.ts";
import { type Metric, metrics, scoreColumns, type Values } from "./metrics.ts";
import { type Refusal, reasonOf } from "./reasons.ts";
import { missingColumn, type Rules, wrongRows } from "./rules.ts";

/** Tolerance for sums of probabilities (numpy.isclose with atol 1e-6). */
const sumTolerance = 1.1e-5;

/**
 * A submission needs the columns, each id of the answers once, finite numbers (or labels, or texts) within the grader's bounds and, if the
 * metric takes probabilities, values in 0..1. Further columns are ignored.
 */
export function graderRules(grader: Grader): Rules {
  const { metric, idColumn, targetColumns } = grader;
  const { input, columns: least = 1 } = metrics[metric];
  return {
    ids: "List", // an id may be the text NA
    wholeColumns: true,
    // Allows probabilities of 20 digits where the answers say 0 or 1, plus a few columns.
    maxBytes: (answersBytes) => Math.min(2 ** 30, Math.max(2 ** 20, 32 * answersBytes)),
    checkAnswers: (frame) => {
      if (targetColumns.length < least)
        throw new Error(`${metric} takes a target column for each class, at least ${least}`);
      checkIds(frame.column(idColumn)!);
    },
    check: (frame, rows) => missingColumn(frame, [idColumn, ...targetColumns]) ?? wrongRows(frame, rows),
    reader: (answers) => {
      const labels = input === "labels" && !answers.every(isNumeric) ? numberLabels(answers) : undefined;
      return (column, truth) => {
        const values = labels ? numberedLabels(column, labels) : readers[input](column);
        return truth && values instanceof Float64Array ? withinBounds(values, column.name, grader) : values;
      };
    },
    checkRows: (predicted) =>
      metrics[metric].probabilities && predicted.length > 1
        ? wrongSum(predicted as Float64Array[], (sum) => Math.abs(sum - 1) <= sumTolerance)
        : undefined,
    score: (truth, predicted) => scoreColumns(metric, truth, predicted, grader),
    round: (score) => score,
  };
}

const readers: Record<Metric["input"], (column: Column) => Values | Refusal> = {
  ...{ numbers, labels: numbers, integers: integerLabels, aboveMinusOne: floatsAboveMinusOne, texts },
  binary: (column) => {
    const values = numbers(column);
    return "reason" in values ? values : within(values, column.name, (value) => value === 0 || value === 1, "0 or 1");
  },
};

function withinBounds(values: Float64Array, column: string, { metric, bounds }: Grader): Float64Array | Refusal {
  const least = Math.max(bounds?.least ?? -Infinity, metrics[metric].probabilities ? 0 : -Infinity);
  const most = Math.min(bounds?.most ?? Infinity, metrics[metric].probabilities ? 1 : Infinity);
  const range =
    most === Infinity ? `at least ${least}` : least === -Infinity ? `at most ${most}` : `in ${least}..${most}`;
  return within(values, column, (value) => !(value < least || value > most), range);
}

/** @throws Error if an id is missing or occurs twice */
function checkIds(ids: Column): void {
  const all = Array.from({ length: ids.rows }, (_, row) => (isNumeric(ids) ? ids.values[row]! : ids.cell(row)));
  const missing = all.findIndex(Number.isNaN);
  if (missing >= 0) throw new Error(reasonOf("idMissing", { column: ids.name, row: missing + 1 }).message);
  if (new Set(all).size !== all.length) throw new Error(`column ${ids.name} has repeated values`);
}

/** Returns numbers from 0 for the answers' labels. */
function numberLabels(columns: readonly Column[]): ReadonlyMap<string, number> {
  const labels = new Set<string>();
  for (const column of columns) for (let row = 0; row < column.rows; row++) labels.add(column.cell(row).trim());
  return new Map([...labels].map((label, number) => [label, number]));
}

/** Returns labels as numbers. A label that the answers lack gets its own number below 0, which is never right. */
function numberedLabels(column: Column, known: ReadonlyMap<string, number>): Float64Array {
  const others = new Map<string, number>();
  return Float64Array.from({ length: column.rows }, (_, row) => {
    const label = column.cell(row).trim();
    const number = known.get(label) ?? others.get(label);
    if (number !== undefined) return number;
    others.set(label, -1 - others.size);
    return -others.size;
  });
}
