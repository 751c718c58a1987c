/** The rules of tasks that name a metric: bundled tasks and a user's own. */
import type { Grader } from "../../crds/trainingrun.ts";
import { type Column, isNumeric } from "./column.ts";
import type { Frame } from "./frame.ts";
import { repeatedId } from "./ids.ts";
import { floatsAboveMinusOne, integerLabels, numbers, texts, within, wrongSum } from "./inputs.ts";
import { placesAmong } from "./label-places.ts";
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
      checkLineEnds(frame);
      checkIds(frame.column(idColumn)!);
      if (input === "numbers" || input === "aboveMinusOne")
        for (const name of targetColumns) checkDoubles(frame.column(name)!);
    },
    check: (frame, rows) => missingColumn(frame, [idColumn, ...targetColumns]) ?? wrongRows(frame, rows),
    reader: (answers) => {
      const read = new Map(answers.map((column) => [column.name, columnReader(column, grader)]));
      return (column, truth) => read.get(column.name)!(column, truth);
    },
    checkRows: (predicted) =>
      metrics[metric].probabilities && predicted.length > 1
        ? wrongSum(predicted as Float64Array[], (sum) => Math.abs(sum - 1) <= sumTolerance)
        : undefined,
    score: (truth, predicted) => scoreColumns(metric, truth, predicted, grader),
    round: (score) => score,
  };
}

function columnReader(answers: Column, grader: Grader): ReturnType<Rules["reader"]> {
  const { input } = metrics[grader.metric];
  const read = (column: Column, truth?: Values) => {
    const values = readers[input](column);
    return truth && values instanceof Float64Array ? withinBounds(values, column.name, grader) : values;
  };
  if (input !== "labels" && input !== "integers") return read;
  const placesOf = placesAmong(answers);
  if (input === "labels" && !isNumeric(answers)) return placesOf;
  return (column, truth) => {
    const values = read(column, truth);
    return "reason" in values ? values : placesOf(column);
  };
}

const readers: Record<Metric["input"], (column: Column) => Values | Refusal> = {
  numbers,
  labels: numbers,
  integers: integerLabels,
  aboveMinusOne: floatsAboveMinusOne,
  texts,
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

/** A delimiter at the end of each row makes pandas read the first column as an index. @throws Error if the rows have one */
function checkLineEnds({ names, unnamed, rows, columnAt }: Frame): void {
  if (unnamed === 0) return;
  const last = columnAt(names.length - 1);
  for (let row = 0; row < rows; row++) if (last.cell(row) !== "") return;
  throw new Error(`the header has ${names.length} names, but rows have more cells; remove the delimiter at their ends`);
}

/** @throws Error if an id is missing or occurs twice */
function checkIds(ids: Column): void {
  const missing = isNumeric(ids) ? ids.values.findIndex(Number.isNaN) : -1;
  if (missing >= 0) throw new Error(reasonOf("idMissing", { column: ids.name, row: missing + 1 }).message);
  const repeated = repeatedId(ids);
  if (repeated)
    throw new Error(`column ${ids.name} has repeated values: ${repeated.value} in rows ${repeated.rows.join(" and ")}`);
}

/** A double cannot tell whole numbers beyond 2^53 from their neighbours. @throws Error if two values of an answers' column become equal */
function checkDoubles(column: Column): void {
  if (!isNumeric(column) || !column.exact) return;
  const known = new Map<number, bigint>();
  for (const [row, value] of column.exact.entries()) {
    const other = known.get(column.values[row]!) ?? value;
    if (other !== value)
      throw new Error(
        `column ${column.name} has ${other} and ${value}, which are equal in double precision; subtract a constant from the column`,
      );
    known.set(column.values[row]!, value);
  }
}
