/** Matches a submission's rows with the test set's rows. */
import { type Column, exactValue, isNumeric, type NumericColumn } from "./column.ts";
import type { Values } from "./metrics.ts";
import { type Refusal, refuse } from "./reasons.ts";

/** For each row of the answers, the row of the submission. Undefined if row i matches row i everywhere. */
export type Alignment = Uint32Array | undefined;

/**
 * Matches submissions with the answers' ids. MLE-bench sorts both sides and compares them, so the ids must be the same with the same
 * multiplicities; equal ids are matched in order. Numbers are compared as numbers (`5`, `5.0`, `005`, `5 `, and True is 1), texts as texts,
 * and a number never equals a text. Two columns of whole numbers are compared exactly, beyond 2^53 too.
 *
 * @param areLists the ids are compared as Python's lists, not as numpy's arrays: a whole number is compared with a float exactly, not as a
 * double, and a missing text is the same object everywhere, whereas NaN equals nothing
 */
export function matcherOf(answers: Column, areLists: boolean): (ids: Column) => Alignment | Refusal {
  const { name, rows } = answers;
  let groups: Groups | undefined;
  return (ids) => {
    if (ids.rows !== rows) return refuse("rowCount", { found: ids.rows, expected: rows });
    for (const [column, code] of [[ids, "idMissing"] as const, [answers, "answerIdMissing"] as const]) {
      if (column.kind === "mixed") return refuse("mixedTypes", { column: name });
      const row = missingRow(column, areLists);
      if (row >= 0) return refuse(code, { column: name, row: row + 1 });
    }
    if (isNumeric(ids) !== isNumeric(answers)) return refuse("idUnknown", { column: name, row: 1, value: ids.cell(0) });
    if (sameInOrder(ids, answers)) return undefined;
    if (needsExactKeys(ids, answers, areLists)) return align(ids, groupRows(answers, exactKey), exactKey);
    groups ??= groupRows(answers, plainKey);
    return align(ids, groups, plainKey);
  };
}

/** Returns the first value that occurs twice, with its rows. Undefined if each id occurs once. */
export function repeatedId(ids: Column): { value: string; rows: [number, number] } | undefined {
  const seen = new Map<Key, number>();
  for (let row = 0; row < ids.rows; row++) {
    const key = isNumeric(ids) ? exactKey(ids, row) : ids.cell(row);
    const first = seen.get(key);
    if (first !== undefined) return { value: ids.cell(row), rows: [first + 1, row + 1] };
    seen.set(key, row);
  }
  return undefined;
}

type Key = number | bigint | string;

/** The answers' rows by key. */
interface Groups {
  groupOf: Map<Key, number>;
  /** The rows of group g are `rows[starts[g] .. starts[g + 1])`, in order. */
  starts: Uint32Array;
  rows: Uint32Array;
}

function groupRows(column: Column, key: (column: Column, row: number) => Key): Groups {
  const groupOf = new Map<Key, number>();
  const groups = Uint32Array.from({ length: column.rows }, (_, row) => {
    const id = key(column, row);
    const group = groupOf.get(id) ?? groupOf.size;
    if (group === groupOf.size) groupOf.set(id, group);
    return group;
  });
  const starts = new Uint32Array(groupOf.size + 1);
  for (const group of groups) starts[group + 1]!++;
  for (let group = 0; group < groupOf.size; group++) starts[group + 1]! += starts[group]!;
  const rows = new Uint32Array(column.rows);
  const next = starts.slice();
  for (let row = 0; row < groups.length; row++) rows[next[groups[row]!]!++] = row;
  return { groupOf, starts, rows };
}

function align(ids: Column, groups: Groups, key: (column: Column, row: number) => Key): Uint32Array | Refusal {
  const alignment = new Uint32Array(ids.rows);
  const used = groups.starts.slice();
  for (let row = 0; row < ids.rows; row++) {
    const group = groups.groupOf.get(key(ids, row));
    if (group === undefined) return refusal("idUnknown", ids, row);
    if (used[group] === groups.starts[group + 1]) return refusal("idRepeated", ids, row);
    alignment[groups.rows[used[group]!++]!] = row;
  }
  return alignment;
}

function refusal(code: "idUnknown" | "idRepeated", ids: Column, row: number): Refusal {
  return refuse(code, { column: ids.name, row: row + 1, value: ids.cell(row) });
}

function missingRow(column: Column, areLists: boolean): number {
  if (isNumeric(column)) return column.kind === "float" ? column.values.findIndex(Number.isNaN) : -1;
  if (areLists) return -1;
  for (let row = 0; row < column.rows; row++) if (column.isMissing(row)) return row;
  return -1;
}

function sameInOrder(ids: Column, answers: Column): boolean {
  if (isNumeric(ids) && isNumeric(answers))
    return !ids.exact && !answers.exact && ids.values.every((value, row) => value === answers.values[row]);
  for (let row = 0; row < ids.rows; row++) if (plainKey(ids, row) !== plainKey(answers, row)) return false;
  return true;
}

// The key of a missing text; no text has it.
const missingKey = -1n;

function plainKey(column: Column, row: number): Key {
  if (isNumeric(column)) return column.values[row]!;
  return column.isMissing(row) ? missingKey : column.cell(row);
}

function needsExactKeys(ids: Column, answers: Column, areLists: boolean): boolean {
  if (!isNumeric(ids) || !isNumeric(answers) || !(ids.exact || answers.exact)) return false;
  return areLists || (ids.kind === "int" && answers.kind === "int");
}

/** The key of a number; equal numbers have equal keys, whether they are written as whole numbers or as floats. */
function exactKey(column: Column, row: number): Key {
  return exactValue(column as NumericColumn, row);
}

/** Returns the columns [target][row] with the given rows, each as often as it is listed. */
export const ofRows = (columns: readonly Values[], rows: Alignment): readonly Values[] =>
  columns.map((column) => inOrder(column, rows));

/** Returns a column's values in the order of `rows`. */
export function inOrder(values: Values, rows: Alignment): Values {
  if (!rows) return values;
  if (!(values instanceof Float64Array)) return Array.from(rows, (row) => values[row]!);
  const ordered = new Float64Array(rows.length);
  for (let i = 0; i < rows.length; i++) ordered[i] = values[rows[i]!]!;
  return ordered;
}
