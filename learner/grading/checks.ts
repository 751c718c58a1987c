/** What MLE-bench's graders check before they compute a score; `mlebench.yaml` says which task checks what. */

import { type Column, isNumeric } from "./column.ts";
import type { Frame } from "./frame.ts";
import { notNumeric } from "./inputs.ts";
import type { CheckName, MleBenchTask } from "./mlebench-tasks.ts";
import { type Refusal, refuse } from "./reasons.ts";

type Check = (frame: Frame, task: MleBenchTask, rows: number) => Refusal | undefined;

/** numpy.isclose(sum, 1, atol=1e-6): the tolerance is atol + rtol, where rtol is 1e-5. */
const closeToOne = (sum: number) => Math.abs(sum - 1) <= 1e-6 + 1e-5;
/** `sum.round(6) == 1`. */
const roundsToOne = (sum: number) => Math.abs(sum * 1e6 - 1e6) <= 0.5;

const targets = (frame: Frame, task: MleBenchTask) => task.targetColumns.map((name) => frame.column(name)!);
/** All columns but the first, whatever their names. */
const allButFirst = (frame: Frame) => frame.names.slice(1).map((_, i) => frame.columnAt(i + 1));

export const checks: Record<CheckName, Check> = {
  idColumn: (frame, { idColumn }) => missingColumn(frame, [idColumn]),
  targetColumns: (frame, { targetColumns }) => missingColumn(frame, targetColumns),
  notEmpty: (frame) => (frame.rows === 0 ? refuse("noRows") : undefined),
  rowCount: (frame, _, rows) =>
    frame.rows === rows ? undefined : refuse("rowCount", { found: frame.rows, expected: rows }),
  exactColumns: (frame, { idColumn, targetColumns }) => {
    const names = [idColumn, ...targetColumns];
    const column = frame.names.find((name) => !names.includes(name));
    if (column !== undefined) return refuse("unexpectedColumn", { column, expected: names.join(",") });
    return missingColumn(frame, names);
  },
  shape: (frame, task, rows) => {
    const expected = task.targetColumns.length + 1;
    if (frame.names.length !== expected) return refuse("columnCount", { found: frame.names.length, expected });
    return checks.rowCount(frame, task, rows);
  },
  numeric: (frame, task) => {
    const column = targets(frame, task).find((target) => !isNumeric(target));
    if (!column) return undefined;
    return column.kind === "mixed" ? refuse("mixedTypes", { column: column.name }) : notNumeric(column);
  },
  /** A missing value passes here; the metric refuses it. */
  zeroToOneOrMissing: (frame, task) => outOfRange(targets(frame, task), (p) => p < 0 || p > 1),
  zeroToOne: (frame, task) => outOfRange(targets(frame, task), (p) => !(p >= 0 && p <= 1)),
  positionalZeroToOne: (frame) => outOfRange(allButFirst(frame), (p) => !(p >= 0 && p <= 1)),
  sumsCloseToOne: (frame, task) => wrongSum(targets(frame, task), closeToOne),
  positionalSumsCloseToOne: (frame) => wrongSum(allButFirst(frame), closeToOne),
  sumsRoundToOne: (frame, task) => wrongSum(targets(frame, task), roundsToOne),
};

function missingColumn(frame: Frame, names: readonly string[]): Refusal | undefined {
  const column = names.find((name) => !frame.names.includes(name));
  return column === undefined
    ? undefined
    : refuse("missingColumn", { column, found: frame.names.slice(0, 100).join(",") });
}

function notNumbers(columns: Column[]): Refusal | undefined {
  const column = columns.find((found) => !isNumeric(found));
  if (!column) return undefined;
  return column.kind === "mixed" ? refuse("mixedTypes", { column: column.name }) : notNumeric(column);
}

function outOfRange(columns: Column[], isOut: (value: number) => boolean): Refusal | undefined {
  const refusal = notNumbers(columns);
  if (refusal) return refusal;
  for (const column of columns) {
    if (!isNumeric(column)) continue;
    const row = column.values.findIndex(isOut);
    if (row < 0) continue;
    const value = column.values[row]!;
    if (Number.isNaN(value)) return refuse("missingValue", { column: column.name, row: row + 1 });
    return refuse("outOfRange", { column: column.name, row: row + 1, value, expected: "in 0..1" });
  }
  return undefined;
}

/** Missing values are left out of the sums, as pandas does it. */
function wrongSum(columns: Column[], isRight: (sum: number) => boolean): Refusal | undefined {
  const refusal = notNumbers(columns);
  if (refusal) return refusal;
  const values = columns.map((column) => (isNumeric(column) ? column.values : new Float64Array(0)));
  for (let row = 0; row < (values[0]?.length ?? 0); row++) {
    let sum = 0;
    for (const column of values) if (!Number.isNaN(column[row])) sum += column[row]!;
    if (!isRight(sum)) return refuse("rowSum", { row: row + 1, value: sum });
  }
  return undefined;
}
