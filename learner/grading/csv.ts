import { isUtf8 } from "node:buffer";
import { parse } from "csv-parse/sync";

/** A table of text cells: `columns.get(name)[row]`. */
export interface Table {
  names: string[];
  columns: Map<string, string[]>;
  rows: number;
}

/** Why bytes are not a usable table: one line that says where and what. */
export interface TableFault {
  reason: string;
}

export interface TableLimits {
  bytes: number;
  /** Without the header. */
  rows: number;
  /** Columns to keep; all of them have to be there. Absent: every column. */
  columns?: readonly string[];
}

const maxColumns = 10_000;

/**
 * Reads a CSV with a header row: UTF-8 with or without a byte order mark, fields quoted where need be, any line ending,
 * blank lines skipped, rows as long as the header; of columns with the same name the first counts, as in pandas. Never
 * throws, whatever the bytes.
 */
export function readTable(bytes: Buffer, limits: TableLimits): Table | TableFault {
  if (bytes.length === 0) return { reason: "the file is empty" };
  if (bytes.length > limits.bytes)
    return { reason: `the file has ${bytes.length} bytes, more than the ${limits.bytes} that a submission can need` };
  if (bytes.includes(0)) return { reason: "the file holds NUL bytes, it is not CSV text" };
  if (!isUtf8(bytes)) return { reason: "the file is not UTF-8 text" };
  let records: string[][];
  try {
    records = parse(bytes, {
      bom: true,
      skip_empty_lines: true,
      relax_column_count: true,
      record_delimiter: ["\r\n", "\n", "\r"],
      // One more than allowed, so that junk without end is not read to its end.
      to: limits.rows + 2,
    });
  } catch (error) {
    return { reason: `not CSV: ${oneLine((error as Error).message)}` };
  }
  const header = records[0];
  if (!header) return { reason: "the file has no header row" };
  if (header.length > maxColumns) return { reason: `the header has ${header.length} columns` };
  if (records.length - 1 > limits.rows) return { reason: `more than ${limits.rows} rows` };
  const names = limits.columns ?? [...new Set(header)];
  const columns = new Map<string, string[]>();
  const places: number[] = [];
  for (const name of names) {
    const place = header.indexOf(name);
    if (place < 0) return { reason: `missing column ${oneLine(name)}; the header is ${oneLine(header.join(","))}` };
    places.push(place);
    columns.set(name, new Array<string>(records.length - 1));
  }
  const kept = [...columns.values()];
  for (let row = 1; row < records.length; row++) {
    const record = records[row]!;
    if (record.length !== header.length)
      return { reason: `row ${row} has ${record.length} fields, the header has ${header.length}` };
    for (let c = 0; c < places.length; c++) kept[c]![row - 1] = record[places[c]!]!;
  }
  return { names: [...names], columns, rows: records.length - 1 };
}

const numberText = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
/** What pandas reads as a missing value. */
const missing = new Set(
  ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"].concat([
    "N/A",
    "NA",
    "NULL",
    "NaN",
    "None",
    "n/a",
    "nan",
    "null",
  ]),
);

const booleans = new Map([
  ...["True", "TRUE", "true"].map((text) => [text, 1] as const),
  ...["False", "FALSE", "false"].map((text) => [text, 0] as const),
]);

/**
 * A column as numbers: decimal and scientific notation, or True and False throughout (1 and 0). Anything else, a missing
 * value and an infinite number included, is a fault that names the row.
 */
export function numericColumn(cells: readonly string[], name: string): Float64Array | TableFault {
  if (cells.every((cell) => booleans.has(cell.trim())))
    return Float64Array.from(cells, (cell) => booleans.get(cell.trim())!);
  const values = new Float64Array(cells.length);
  for (let row = 0; row < cells.length; row++) {
    const cell = cells[row]!;
    const value = numberOf(cell);
    if (value === undefined)
      return missing.has(cell.trim())
        ? { reason: `${oneLine(name)} is missing (NaN) in row ${row + 1}` }
        : { reason: `${oneLine(name)} in row ${row + 1} is not a number: ${oneLine(cell)}` };
    if (!Number.isFinite(value)) return { reason: `${oneLine(name)} in row ${row + 1} is infinite` };
    values[row] = value;
  }
  return values;
}

/** The number that a cell says, undefined if it says none. */
export function numberOf(cell: string): number | undefined {
  if (numberText.test(cell)) return Number(cell);
  const text = cell.trim();
  if (numberText.test(text)) return Number(text);
  if (/^[+-]?inf(inity)?$/i.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  return undefined;
}

/** Text of a submission on one line, without control characters, cut where it is long. */
export function oneLine(text: string): string {
  const line = text.replace(/\p{C}/gu, " ");
  return line.length > 80 ? `${line.slice(0, 77)}...` : line;
}
