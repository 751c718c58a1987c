/**
 * Reads CSV as `pandas.read_csv(file, float_precision="round_trip")` of pandas 2.2 does, because that decides which
 * submissions the graders of MLE-bench accept (`pandas/_libs/src/parser/tokenizer.c`, `pandas/_libs/parsers.pyx`).
 */
import { isUtf8 } from "node:buffer";
import { type Cells, type Column, cellText, inferColumn } from "./column.ts";
import { type Refusal, refuse } from "./reasons.ts";

export interface FrameLimits {
  bytes: number;
  /** Most rows to read, without the header. */
  rows: number;
  /** Infer one type for each whole column. Otherwise blocks of rows are typed separately, as pandas does to save memory. */
  wholeColumns?: boolean;
  /** The character between cells; default a comma. One byte in UTF-8, and no quote or line end. */
  delimiter?: string;
  /** If rows are longer than the header, the header names their first cells, and pandas' index is not assumed (`index_col=False`). */
  withoutIndex?: boolean;
}

const maxColumns = 10_000;

/**
 * Returns a table of text whose columns are typed on demand.
 *
 * @param names names of all columns, made distinct as in pandas (`x`, `x.1`; `Unnamed: 0` without a name)
 * @param unnamed columns without a name, if the first row is longer than the header: pandas' index, which comes first
 */
function tableOf(names: readonly string[], unnamed: number, cells: Cells, limits: FrameLimits) {
  const { wholeColumns = false, withoutIndex = false } = limits;
  // pandas infers a type over a number of rows that is a power of two below 2^20 divided by the number of columns.
  const power = 2 ** (Math.ceil(Math.log2(Math.floor(2 ** 20 / (unnamed + names.length)))) - 1);
  const blockRows = wholeColumns ? Infinity : Math.max(1, power);
  const leading = withoutIndex ? 0 : unnamed;
  const columns: Column[] = [];
  const columnAt = (place: number): Column => {
    columns[place] ??= inferColumn(names[place] ?? "", cells, leading + place, blockRows);
    return columns[place];
  };
  const column = (name: string) => (names.includes(name) ? columnAt(names.indexOf(name)) : undefined);
  return { names, unnamed, rows: cells.rowStarts.length - 1, column, columnAt };
}

export type Frame = ReturnType<typeof tableOf>;

const [lf, cr, quote, space, tab] = [10, 13, 34, 32, 9];

/** Reads delimited text. Never throws, whatever the bytes are; `limits` bound time and memory. */
export function readFrame(bytes: Buffer, limits: FrameLimits): Frame | Refusal {
  if (bytes.length > limits.bytes) return refuse("fileTooLarge", { found: bytes.length, expected: limits.bytes });
  if (!isUtf8(bytes)) return refuse("notUtf8");
  const rows = new RowReader(bytes, limits.delimiter);
  if (!rows.next()) return rows.refusal ?? refuse("emptyFile");
  const header = headerNames(rows);
  rows.forget();
  let starts = new Uint32Array(Math.min(limits.rows, bytes.length >> 2) + 2);
  let count = 0;
  // The first row may be longer than the header, but no later row may be longer than the first.
  let width = header.length;
  while (rows.next()) {
    count++;
    if (count === 1) width = Math.max(width, rows.fields);
    if (rows.fields > width) return refuse("longRow", { row: count, found: rows.fields, expected: width });
    if (count > limits.rows) return refuse("rowCount", { found: `more than ${limits.rows}`, expected: limits.rows });
    if (count === starts.length) starts = grown(starts);
    starts[count] = rows.cells;
  }
  if (rows.refusal) return rows.refusal;
  const cells = { ...rows.read(), rowStarts: starts.subarray(0, count + 1) };
  return tableOf(header, width - header.length, cells, limits);
}

/** Returns the names of the columns. Undefined if the bytes have no header. */
export function readHeader(bytes: Buffer, delimiter: string): string[] | undefined {
  const rows = new RowReader(bytes, delimiter);
  return rows.next() ? headerNames(rows) : undefined;
}

function grown(values: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  return new Uint32Array(values.buffer.transfer(values.byteLength * 2));
}

/** pandas' tokenizer, one row at a time. */
class RowReader {
  fields = 0;
  /** Number of cells in all rows since `forget`. */
  cells = 0;
  refusal: Refusal | undefined;
  readonly #bytes: Buffer;
  readonly #stream: Buffer;
  #at = 0;
  #length = 0;
  #ends: Uint32Array<ArrayBuffer>;
  #row = 0;
  /** The byte at which pandas' current read began: pandas reads the header and the first row, then the rest. */
  #callStart = 0;
  readonly #delimiter: number;

  constructor(bytes: Buffer, delimiter = ",") {
    this.#delimiter = delimiter.charCodeAt(0);
    this.#bytes = bytes;
    this.#stream = Buffer.allocUnsafe(bytes.length);
    this.#ends = new Uint32Array(Math.max(16, bytes.length >> 2));
    if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) this.#at = this.#callStart = 3;
  }

  /** Drops the cells so far (the header). */
  forget(): void {
    this.cells = 0;
    this.#length = 0;
  }

  read(): { stream: Buffer; ends: Uint32Array } {
    return { stream: this.#stream, ends: this.#ends.subarray(0, this.cells) };
  }

  cell(i: number): string {
    return cellText(this.#stream, this.#ends, i);
  }

  /** Reads a row. @returns false at the end, or after a `refusal` */
  next(): boolean {
    const [bytes, stream, size, delimiter] = [this.#bytes, this.#stream, this.#bytes.length, this.#delimiter];
    const most = Math.max(delimiter, cr);
    let at = this.#at;
    // Most rows start with a character that is not blank.
    if (at >= size || bytes[at]! <= space) at = this.#skipBlankLines();
    if (at >= size || this.refusal) return false;
    const before = this.cells;
    let [cells, length, ends] = [before, this.#length, this.#ends];
    this.#row++;
    for (;;) {
      if (bytes[at] === quote) {
        at++;
        for (;;) {
          // In quotes: skip to the next quote, and continue if it is doubled.
          const end = bytes.indexOf(quote, at);
          if (end < 0) {
            this.refusal = refuse("unclosedQuote", { row: this.#row - 1 });
            return false;
          }
          for (; at < end; at++) stream[length++] = bytes[at]!;
          at++;
          if (bytes[at] !== quote) break;
          stream[length++] = quote;
          at++;
        }
      }
      let c = 0;
      for (; at < size; at++) {
        c = bytes[at]!;
        // Quotes after the first character are text. Most characters are above a comma and the line ends.
        if (c <= most && (c === delimiter || c === lf || c === cr)) break;
        stream[length++] = c;
      }
      if (cells - before === maxColumns) {
        this.refusal = refuse("tooManyColumns", { row: this.#row - 1, expected: maxColumns });
        return false;
      }
      if (cells === ends.length) ends = this.#ends = grown(ends);
      ends[cells++] = length;
      if (at < size && c === delimiter) {
        at++;
        continue;
      }
      if (at < size) at += c === cr && bytes[at + 1] === lf ? 2 : 1;
      break;
    }
    this.#at = at;
    if (this.#row === 2) this.#callStart = at;
    this.#length = length;
    this.cells = cells;
    this.fields = cells - before;
    return true;
  }

  /** Skips lines that are empty or contain only blanks. @returns the start of the next row */
  #skipBlankLines(): number {
    const [bytes, delimiter] = [this.#bytes, this.#delimiter];
    let at = this.#at;
    for (;;) {
      let end = at;
      while (bytes[end] === space || (bytes[end] === tab && delimiter !== tab)) end++;
      if (end >= bytes.length) return end;
      if (bytes[end] === lf) at = end + 1;
      // pandas drops a delimiter after the carriage return of an empty line.
      else if (bytes[end] === cr) at = end + (bytes[end + 1] === lf || bytes[end + 1] === delimiter ? 2 : 1);
      else {
        // pandas goes back from the blanks to the last line feed, across any number of rows, and then loops for ever.
        if (end > at && bytes[at - 1] !== lf && at !== this.#callStart)
          this.refusal = refuse("carriageReturn", { row: this.#row });
        return at;
      }
    }
  }
}

/** Makes the header's names distinct: a second `x` becomes `x.1`, and a column without a name `Unnamed: 0`. */
function headerNames(rows: RowReader): string[] {
  const names = Array.from({ length: rows.fields }, (_, i) => rows.cell(i));
  const [named, unnamed] = [[] as number[], [] as number[]];
  for (const [i, name] of names.entries()) (name === "" ? unnamed : named).push(i);
  for (const i of unnamed) names[i] = `Unnamed: ${i}`;
  const present = new Map<string, number>();
  for (const name of names) present.set(name, (present.get(name) ?? 0) + 1);
  const counts = new Map<string, number>();
  for (const i of [...named, ...unnamed]) {
    const given = names[i]!;
    let name = given;
    let count = counts.get(name) ?? 0;
    while (count > 0) {
      counts.set(given, count + 1);
      name = `${given}.${count}`;
      if ((present.get(name) ?? 0) > 0) count++;
      else count = counts.get(name) ?? 0;
    }
    if (name !== given) {
      present.set(given, present.get(given)! - 1);
      present.set(name, (present.get(name) ?? 0) + 1);
      names[i] = name;
    }
    counts.set(name, count + 1);
  }
  return names;
}
