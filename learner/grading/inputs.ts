/** Converts a column to a metric's input: numbers, labels or texts, read as the reference's libraries read them. */
import { type Column, isNumeric, type TextColumn } from "./column.ts";
import type { Values } from "./metrics.ts";
import { pythonFloat, pythonRepr } from "./python-text.ts";
import { type Refusal, refuse } from "./reasons.ts";

/** Returns finite numbers from a column that pandas reads as numbers; True is 1. */
export function numbers(column: Column): Float64Array | Refusal {
  if (!isNumeric(column)) return wrongType(column);
  return column.kind === "float" ? finite(column.values, column) : column.values;
}

/** Like `numbers`, but also accepts a column of text in which Python's `float` reads every cell (scikit-learn's check_array). */
export function floats(column: Column): Float64Array | Refusal {
  if (column.kind !== "text") return numbers(column);
  const values = new Float64Array(column.rows);
  for (let row = 0; row < column.rows; row++) {
    const value = column.isMissing(row) ? Number.NaN : pythonFloat(column.cell(row));
    if (value === undefined) return wrongType(column, row);
    values[row] = value;
  }
  return finite(values, column);
}

/** Like `floats`, but only values above -1, so that log(1 + value) is finite. */
export function floatsAboveMinusOne(column: Column): Float64Array | Refusal {
  const values = floats(column);
  return "reason" in values ? values : within(values, column.name, (value) => value > -1, "above -1");
}

/** @returns the values, or why the first value out of range is refused */
export function within(
  values: Float64Array,
  column: string,
  isIn: (value: number) => boolean,
  expected: string,
): Float64Array | Refusal {
  const row = values.findIndex((value) => !isIn(value));
  if (row < 0) return values;
  if (Number.isNaN(values[row])) return refuse("missingValue", { column, row: row + 1 });
  return refuse("outOfRange", { column, row: row + 1, value: values[row]!, expected });
}

/** Returns a refusal of the first row whose values have a wrong sum. Missing values are skipped, as in pandas. */
export function wrongSum(columns: readonly Float64Array[], isRight: (sum: number) => boolean): Refusal | undefined {
  for (let row = 0; row < (columns[0]?.length ?? 0); row++) {
    let sum = 0;
    for (const column of columns) if (!Number.isNaN(column[row])) sum += column[row]!;
    if (!isRight(sum)) return refuse("rowSum", { row: row + 1, value: sum });
  }
  return undefined;
}

/** Returns labels that are whole numbers; `3.0` is 3. */
export function integerLabels(column: Column): Float64Array | Refusal {
  const values = numbers(column);
  if ("reason" in values || column.kind !== "float") return values;
  // scikit-learn compares a float with its own int64.
  const isLabel = (value: number) => Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63;
  const row = values.findIndex((value) => !isLabel(value));
  return row < 0 ? values : refuse("notInteger", { column: column.name, row: row + 1, value: column.cell(row) });
}

/**
 * Like `integerLabels`. If a column has labels beyond int64, scikit-learn 1.6 leaves those out of the kappa that no double equals. A
 * submission could then drop uncertain rows, so such labels are refused here.
 */
export function kappaLabels(column: Column): Float64Array | Refusal {
  const values = integerLabels(column);
  if ("reason" in values || column.kind !== "int" || !column.exact?.some((label) => label >= 2n ** 63n)) return values;
  const row = column.exact.findIndex((label) => BigInt(Number(label)) !== label);
  if (row < 0) return values;
  return refuse("outOfRange", { column: column.name, row: row + 1, value: column.cell(row), expected: "below 2^63" });
}

/**
 * Like `integerLabels`. A column of text is no error in scikit-learn 1.6's accuracy, but every label is wrong (NaN), unless both sides have
 * at most two labels.
 */
export function labelsOrTexts(column: Column, truth?: Values): Float64Array | Refusal {
  if (column.kind !== "text" || truth === undefined) return integerLabels(column);
  const labels = new Set<string>();
  for (let row = 0; row < column.rows; row++) {
    if (column.isMissing(row)) return refuse("missingValue", { column: column.name, row: row + 1 });
    labels.add(column.cell(row));
  }
  if (labels.size <= 2 && new Set<number | string>(truth).size <= 2) return wrongType(column);
  return new Float64Array(column.rows).fill(Number.NaN);
}

/** Longest text, because the words of a longer one could take gigabytes. */
const maxTextCharacters = 2 ** 20;

/** Returns texts like `fillna("").astype(str)`: a missing cell is empty, and numbers are written as in Python. */
export function texts(column: Column): string[] | Refusal {
  const { rows, cell, name } = column;
  const all = (text: (row: number) => string) => Array.from({ length: rows }, (_, row) => text(row));
  switch (column.kind) {
    case "text": {
      const found = all((row) => (column.isMissing(row) ? "" : cell(row)));
      const row = found.findIndex(({ length }) => length > maxTextCharacters);
      if (row < 0) return found;
      return refuse("longText", { column: name, row: row + 1, found: found[row]!.length, expected: maxTextCharacters });
    }
    case "int":
      return all((row) => BigInt(cell(row)).toString());
    case "float":
      return all((row) => (Number.isNaN(column.values[row]) ? "" : pythonRepr(column.values[row]!)));
    default: {
      // The column has True, False and missing cells.
      const names: Record<string, string> = { true: "True", false: "False" };
      return all((row) => names[cell(row).toLowerCase()] ?? "");
    }
  }
}

function finite(values: Float64Array, { name }: Column): Float64Array | Refusal {
  for (let row = 0; row < values.length; row++)
    if (!Number.isFinite(values[row]))
      return refuse(Number.isNaN(values[row]) ? "missingValue" : "infiniteValue", { column: name, row: row + 1 });
  return values;
}

/** @param row row of the cell that makes the column text */
export function wrongType(column: TextColumn, row = column.firstText): Refusal {
  if (column.kind === "mixed") return refuse("mixedTypes", { column: column.name });
  return refuse("notNumeric", { column: column.name, row: row + 1, value: column.cell(row) });
}
