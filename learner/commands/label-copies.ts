/** Finds features that reveal the label: a program that copies one needs no model. */
import { type Column, exactValue, isNumeric, type NumericColumn } from "../grading/column.ts";
import type { Frame } from "../grading/frame.ts";
import { placesAmong } from "../grading/label-places.ts";
import { spearman } from "../grading/regression.ts";

interface LabelCopy {
  feature: string;
  label: string;
  /** `equal`: the same value in every row. `oneToOne`: each value of the feature belongs to one value of the label and vice versa. */
  how: "equal" | "oneToOne";
}

/** Fewer rows can be equal by chance. */
const leastRows = 10;
/** Columns with fewer rows per value on average, such as ids, are one-to-one by chance. */
const leastRowsAValue = 2;

/**
 * Returns each feature of the test table that equals a label in the training table, or is one-to-one with it. Labels are columns of the
 * training table that the test table lacks.
 *
 * @param testColumns names of the test table's columns
 */
export function labelCopies(train: Frame, testColumns: readonly string[]): LabelCopy[] {
  if (train.rows < leastRows) return [];
  const isFeature = (name: string) => testColumns.includes(name);
  const columns = train.names.map((name) => train.column(name)!);
  const labels = columns.filter(({ name }) => !isFeature(name));
  return columns
    .filter(({ name }) => isFeature(name))
    .flatMap((feature) =>
      labels.flatMap((label): LabelCopy[] => {
        const how = isEqual(feature, label) ? "equal" : isOneToOne(feature, label) ? "oneToOne" : undefined;
        return how ? [{ feature: feature.name, label: label.name, how }] : [];
      }),
    );
}

const rowsOf = (column: Column) => Array.from({ length: column.rows }, (_, row) => row);

function isEqual(feature: Column, label: Column): boolean {
  const same =
    isNumeric(feature) && isNumeric(label)
      ? (row: number) => exactValue(feature, row) === exactValue(label, row)
      : (row: number) => feature.cell(row).trim() === label.cell(row).trim();
  return !isConstant(label) && rowsOf(label).every(same);
}

const isConstant = (column: Column) => rowsOf(column).every((row) => column.cell(row) === column.cell(0));

/** Checks many numbers for a monotonic relation, and few values with a table of pairs. */
function isOneToOne(feature: Column, label: Column): boolean {
  const forward = new Map<string, string>();
  const back = new Map<string, string>();
  for (const row of rowsOf(label)) {
    const [a, b] = [feature.cell(row), label.cell(row)];
    if ((forward.get(a) ?? b) !== b || (back.get(b) ?? a) !== a) return false;
    forward.set(a, b);
    back.set(b, a);
  }
  if (forward.size < 2) return false;
  if (forward.size * leastRowsAValue <= label.rows) return true;
  if (!isNumeric(feature) || !isNumeric(label)) return false;
  return Math.abs(spearman(ordered(feature), ordered(label))) > 1 - 1e-12;
}

/** Returns numbers that are equal and ordered as the column's, also beyond 2^53. */
function ordered(column: NumericColumn): Float64Array {
  return column.exact ? placesAmong(column)(column) : column.values;
}
