/** Reads a person's table for `task init`, as spreadsheets and other tools write tables. */
import { type Column, isNumeric } from "../grading/column.ts";
import { type Frame, readFrame, readHeader } from "../grading/frame.ts";
import { escaped, shownName, twinOf } from "../grading/name-twins.ts";
import { missingTokens } from "../grading/python-text.ts";
import { TaskError } from "./errors.ts";
import { count } from "./public-files.ts";
import { maxTableBytes, readTableFile, word } from "./table-file.ts";

/** Most rows of a table that is read. */
const maxTableRows = 50_000_000;
/** Bytes of a file's head in which its header must end. */
const maxHeaderBytes = 2 ** 20;
const delimiters = [",", ";", "\t", "|"];
const delimiterNames: Record<string, string> = { ";": "semicolons", "\t": "tabs", "|": "vertical bars" };

export interface InputTable {
  from: string;
  columns: Column[];
  rows: number;
  delimiter: string;
  /** A line for each thing that was read otherwise than it stands there. */
  notes: string[];
}

/**
 * Returns the table. It may be packed, in another encoding, and delimited by commas, semicolons, tabs or vertical bars; the delimiter is
 * the one with which the header has the column `target`. Decimal commas become points if commas do not delimit.
 *
 * @throws TaskError in one line that names the remedy
 */
export function readTable(from: string, target: string, encoding?: string): InputTable {
  const file = readTableFile(from, encoding);
  // A spreadsheet may say in a first line of its own what delimits.
  const [line = "", said] = /^\ufeff?sep=([,;\t|])\r?\n/.exec(file.toString("utf8", 0, 16)) ?? [];
  const bytes = file.subarray(Buffer.byteLength(line));
  const delimiter = said ?? delimiterOf(bytes, target);
  const limits = { bytes: maxTableBytes, rows: maxTableRows, wholeColumns: true, withoutIndex: true, delimiter };
  const frame = readFrame(bytes, limits);
  if ("reason" in frame) throw new TaskError("folder", `--from ${from}: ${frame.reason.message}`);
  const notes: string[] = [];
  if (delimiter !== ",") notes.push(`${from} is delimited by ${delimiterNames[delimiter]}; the task's files by commas`);
  const given = namedColumns(frame, from, notes);
  const columns = delimiter === "," ? given : given.map((column) => withPoints(column, notes));
  return { from, columns, rows: frame.rows, delimiter, notes };
}

/** Returns the column. @throws TaskError that shows the names, and a name that only looks like the wanted one */
export function columnNamed({ from, columns }: InputTable, name: string, option: string): Column {
  const found = columns.find((column) => column.name === name);
  if (found) return found;
  const names = columns.map((column) => column.name);
  const twin = twinOf(name, names);
  const what = twin
    ? `it has ${twin.quoted}, with ${twin.difference}; rename it there, or give ${option} ${exactWord(twin.name)}`
    : `it has ${names.slice(0, 50).map(shownName).join(", ")}`;
  throw new TaskError("folder", `${option} ${name}: ${from} has no such column; ${what}`);
}

/** Returns a word for bash that has exactly these characters, also those that cannot be seen. */
function exactWord(name: string): string {
  if (escaped(name) === name) return word(name);
  return `$'${escaped(name.replaceAll(/[\\']/g, "\\$&"))}'`;
}

function delimiterOf(bytes: Buffer, target: string): string {
  const head = bytes.subarray(0, maxHeaderBytes);
  const headers = delimiters.map((delimiter) => ({ delimiter, names: readHeader(head, delimiter) ?? [] }));
  const withTarget =
    headers.find(({ names }) => names.includes(target)) ?? headers.find(({ names }) => twinOf(target, names));
  const widest = headers.reduce((most, one) => (one.names.length > most.names.length ? one : most));
  return (withTarget ?? widest).delimiter;
}

/** Returns the columns without those that a delimiter at the end of the lines makes. */
function namedColumns(frame: Frame, from: string, notes: string[]): Column[] {
  const { names, unnamed } = frame;
  const isEmpty = (column: Column) =>
    Array.from({ length: column.rows }, (_, row) => row).every((row) => column.cell(row).trim() === "");
  for (let place = names.length; place < names.length + unnamed; place++)
    if (!isEmpty(frame.columnAt(place)))
      throw new TaskError(
        "folder",
        `--from ${from}: the header has ${names.length} names, but rows have ${names.length + unnamed} cells; ` +
          "add the names that are missing, also one for row names in front",
      );
  const columns = names.map((_, place) => frame.columnAt(place));
  const named = columns.filter((column) => !(/^Unnamed: \d+$/.test(column.name) && isEmpty(column)));
  const empty = columns.length - named.length + unnamed;
  if (empty > 0) notes.push(`${count(empty, "column")} without a name and without a value: left out`);
  return named;
}

/** A whole number or a number with a decimal comma; points may separate thousands. */
const withComma = /^[+-]?(?=.*\d)(\d{1,3}(\.\d{3})+|\d*)(,\d+)?$/;
/** A comma before three digits can also separate thousands. */
const ambiguous = /^[+-]?\d{1,3},\d{3}$/;

/** Largest share of a column's cells, such as `?`, that are no numbers where the others have decimal commas. */
const maxOtherShare = 0.1;

/** Returns a column of numbers with decimal commas as numbers with points, another column as it is. */
function withPoints(column: Column, notes: string[]): Column {
  if (isNumeric(column)) return column;
  let [certain, others] = [0, 0];
  for (let row = 0; row < column.rows; row++) {
    const text = column.cell(row).trim();
    if (missingTokens.has(text)) continue;
    if (!withComma.test(text)) others++;
    else if (text.includes(",") && !ambiguous.test(text)) certain++;
  }
  if (certain === 0 || others > maxOtherShare * column.rows) return column;
  notes.push(`${shownName(column.name)} has decimal commas; the task's files have points`);
  const point = (text: string) => (withComma.test(text) ? text.replaceAll(".", "").replace(",", ".") : text);
  const cells = Array.from({ length: column.rows }, (_, row) => `${point(column.cell(row).trim())},`);
  const bytes = Buffer.from(`x,\n${cells.join("\n")}\n`);
  const frame = readFrame(bytes, { bytes: bytes.length, rows: column.rows, wholeColumns: true }) as Frame;
  return { ...frame.columnAt(0), name: column.name };
}

/** Returns why a metric cannot use the column, whose cells are not all numbers, and what to do. */
export function notNumbers(column: Column, { from, delimiter }: InputTable, metric: string): string {
  const isNumber = (text: string) => missingTokens.has(text) || (text.trim() !== "" && Number.isFinite(Number(text)));
  const rows = Array.from({ length: column.rows }, (_, row) => row);
  const others = rows.filter((row) => !isNumber(column.cell(row)));
  const first = others[0] ?? 0;
  const text = column.cell(first);
  const what = `--metric ${metric} takes numbers, but column ${column.name} of ${from} has ${JSON.stringify(text)} in row ${first + 1}`;
  const marked = others.filter((row) => plainNumber(column.cell(row)) !== undefined).length;
  const number = plainNumber(text);
  if (number !== undefined && marked > others.length / 2) {
    const other = delimiter !== "," && ambiguous.test(text.trim()) ? ` or ${text.trim().replace(",", ".")}` : "";
    return (
      `${what}${more(others.length)}; write ${number}${other} there, because currency signs, units and thousands ` +
      "separators are not read, or give a metric of labels, for example Accuracy"
    );
  }
  if (others.length < column.rows / 2)
    return `${what}${more(others.length)}; write a number there, or nothing: rows without a ${column.name} are left out`;
  return `${what}; give a metric of labels, for example Accuracy`;
}

const more = (count: number) => (count > 1 ? ` and no numbers in ${count - 1} other rows` : "");

/** Returns the number in a text such as `$1,000`, `(1 000 €)`, `1.000,5` or `12 kg`. Undefined if there is none. */
function plainNumber(text: string): string | undefined {
  const bare = text
    .replaceAll(/[\p{Sc}%\s]/gu, "")
    .replace(/^\((.*)\)$/, "-$1")
    .replace(/^[A-Z]{3}(?=[\d.+-])|(?<=\d)[\p{L}°²³/]+$/gu, "");
  const plain = /^[+-]?\d{1,3}([,'’]\d{3})+(\.\d*)?$/.test(bare)
    ? bare.replaceAll(/[,'’]/g, "")
    : bare.includes(",") && withComma.test(bare)
      ? bare.replaceAll(".", "").replace(",", ".")
      : bare;
  return plain !== text.trim() && plain !== "" && Number.isFinite(Number(plain)) ? plain : undefined;
}
