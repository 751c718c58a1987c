/** Profiles a data file: records, columns, their types and missing cells. Bounded, whatever the file's size. */
import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { isNumeric, joined } from "../grading/column.ts";
import { readFrame } from "../grading/frame.ts";

/** Bytes of a table that are read for types and missing cells: 8 MiB of numbers take a third of a second. */
export const profileBytes = 8 * 2 ** 20;
/** JSON is parsed as a whole; a larger file has no profile. */
const maxJsonBytes = 64 * 2 ** 20;
/** Records are counted up to this size, at about 400 MB a second. */
const maxCountedBytes = 8 * 2 ** 30;

export interface ColumnFacts {
  name: string;
  /** The type as pandas infers it; `list` and `object` in JSON. */
  type: "int" | "float" | "bool" | "text" | "mixed" | "list" | "object";
  /** Cells that pandas reads as NaN, or null or absent fields, among the profiled rows. */
  missing: number;
}

export interface TableFacts {
  columns: ColumnFacts[];
  /** Cells of a row beyond the header's names; absent if there are none. */
  unnamed?: number;
  /** Number of records that the types and missing cells come from. */
  profiledRows: number;
  /** Rows of the whole file; absent for files beyond `maxCountedBytes`. */
  rows?: number;
}

export interface Unreadable {
  problem: string;
  remedy?: string;
}

/** @param path a .csv file, or a .json file with a list of objects @returns undefined for another kind of file */
export function profileFile(path: string): TableFacts | Unreadable | undefined {
  if (/\.csv$/i.test(path)) return profileTable(path);
  if (/\.json$/i.test(path)) return profileJson(path);
  return undefined;
}

function profileTable(path: string): TableFacts | Unreadable {
  const size = statSync(path).size;
  const head = readHead(path, profileBytes);
  const bytes = head.length < size ? head.subarray(0, lastRecordEnd(head)) : head;
  const frame = readFrame(bytes, { bytes: profileBytes, rows: profileBytes });
  if ("reason" in frame) {
    const { code, message } = frame.reason;
    const remedy = "convert it with: iconv -f ENCODING -t UTF-8 FILE > NEW.csv, for example from windows-1252";
    return { problem: message, ...(code === "notUtf8" && { remedy }) };
  }
  const columns = frame.names.map((name, place): ColumnFacts => {
    const column = frame.columnAt(place);
    const isMissing = isNumeric(column) ? (row: number) => Number.isNaN(column.values[row]) : column.isMissing;
    let missing = 0;
    for (let row = 0; row < column.rows; row++) if (isMissing(row)) missing++;
    return { name, type: column.kind, missing };
  });
  const rows = bytes.length === size ? frame.rows : size <= maxCountedBytes ? countRecords(path) - 1 : undefined;
  const { unnamed } = frame;
  return { columns, profiledRows: frame.rows, ...(unnamed > 0 && { unnamed }), ...(rows !== undefined && { rows }) };
}

function profileJson(path: string): TableFacts | Unreadable | undefined {
  if (statSync(path).size > maxJsonBytes) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    return { problem: `it is not JSON: ${(error as Error).message}` };
  }
  if (!Array.isArray(value) || !value.every((record) => record !== null && typeof record === "object"))
    return undefined;
  const records = value as Record<string, unknown>[];
  const columns = [...new Set(records.flatMap(Object.keys))].map((name): ColumnFacts => {
    const fields = records.map((record) => record[name]).filter((field) => field !== undefined && field !== null);
    return { name, type: joined(new Set(fields.map(jsonType)), "mixed"), missing: records.length - fields.length };
  });
  return { columns, profiledRows: records.length, rows: records.length };
}

function jsonType(field: unknown): ColumnFacts["type"] {
  if (Array.isArray(field)) return "list";
  if (typeof field === "number") return Number.isInteger(field) ? "int" : "float";
  return typeof field === "boolean" ? "bool" : typeof field === "string" ? "text" : "object";
}

const [lineFeed, carriageReturn, quote] = [10, 13, 34];

/** Counts the records of a CSV file, header included: non-empty lines; a line break between quotes ends none. */
export function countRecords(path: string): number {
  const file = openSync(path, "r");
  try {
    const buffer = Buffer.allocUnsafe(2 ** 20);
    let [records, quoted, open] = [0, false, false];
    for (let length = readSync(file, buffer); length > 0; length = readSync(file, buffer))
      for (let at = 0; at < length; at++) {
        const byte = buffer[at]!;
        if (byte === quote) quoted = !quoted;
        if (byte === lineFeed && !quoted) {
          if (open) records++;
          open = false;
        } else if (byte !== carriageReturn) open = true;
      }
    return records + (open ? 1 : 0);
  } finally {
    closeSync(file);
  }
}

/** Returns where the last complete record of a head ends. */
function lastRecordEnd(head: Buffer): number {
  let [end, quoted] = [0, false];
  for (let at = 0; at < head.length; at++) {
    if (head[at] === quote) quoted = !quoted;
    else if (head[at] === lineFeed && !quoted) end = at + 1;
  }
  return end;
}

export function readHead(path: string, bytes: number): Buffer {
  const file = openSync(path, "r");
  try {
    const buffer = Buffer.alloc(Math.min(bytes, statSync(path).size));
    return buffer.subarray(0, readSync(file, buffer, 0, buffer.length, 0));
  } finally {
    closeSync(file);
  }
}
