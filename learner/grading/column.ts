/** Infers a column's type as pandas does: int64 (or uint64), float64, bool, or text. Missing cells are NaN. */
import { missingTokens } from "./python-text.ts";

/** Positions of the rows' cells: cell i of row r is `stream[ends[s - 1] .. ends[s])` with s = `rowStarts[r] + i`. */
export interface Cells {
  /** The cells' bytes without delimiters and quotes, concatenated. */
  stream: Buffer;
  ends: Uint32Array;
  /** One entry more than there are rows. */
  rowStarts: Uint32Array;
}

interface ColumnBase {
  name: string;
  rows: number;
  /** Returns the cell's original text. */
  cell: (row: number) => string;
}

export interface NumericColumn extends ColumnBase {
  /** In `bool`, 1 is True. A column with a missing cell is never `int`. */
  kind: "int" | "float" | "bool";
  /** NaN for a missing cell. */
  values: Float64Array;
  /** For an `int` column with values beyond 2^53. */
  exact?: bigint[];
}

export interface TextColumn extends ColumnBase {
  /** `mixed`: True and False with missing cells, or blocks of rows whose types do not agree. */
  kind: "text" | "mixed";
  /** Returns true if pandas has NaN instead of a text. */
  isMissing: (row: number) => boolean;
  /** The first row whose cell is not a number. */
  firstText: number;
}

export type Column = NumericColumn | TextColumn;

/** Returns the text of cell i; pandas ends it at a NUL byte. */
export function cellText(stream: Buffer, ends: Uint32Array, i: number): string {
  const start = i === 0 ? 0 : ends[i - 1]!;
  let end = start;
  while (end < ends[i]! && stream[end] !== 0) end++;
  return stream.toString("utf8", start, end);
}

export function isNumeric(column: Column): column is NumericColumn {
  return column.kind !== "text" && column.kind !== "mixed";
}

/**
 * Returns a cell's number: a double up to 2^53, a bigint beyond it, where doubles would make neighbours equal. Equal numbers are the same
 * value, so that maps and comparisons hold.
 */
export function exactValue({ values, exact }: NumericColumn, row: number): number | bigint {
  const value = values[row]!;
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER || !Number.isInteger(value)) return value;
  return exact ? exact[row]! : BigInt(value);
}

type Kind = Column["kind"] | "textWithoutMissing";

/** @param at index of the column @param blockRows number of rows over which one type is inferred */
export function inferColumn(name: string, cells: Cells, at: number, blockRows: number): Column {
  const reader = new CellReader(cells, at);
  const rows = cells.rowStarts.length - 1;
  const base = { name, rows, cell: (row: number) => reader.text(row) };
  const values = new Float64Array(rows);
  const blocks: ReturnType<typeof inferBlock>[] = [];
  for (let start = 0; start < rows; start += blockRows)
    blocks.push(inferBlock(reader, values, start, Math.min(rows, start + blockRows)));
  const kind = joined<Kind>(new Set(blocks.map((block) => block.kind)), "text");
  if (kind === "text" || kind === "mixed" || kind === "textWithoutMissing") {
    const isMissing = (row: number) => kind !== "textWithoutMissing" && missingTokens.has(reader.text(row));
    const firstText = Math.max(0, blocks.find((block) => block.firstText >= 0)?.firstText ?? 0);
    return { ...base, kind: kind === "mixed" ? "mixed" : "text", isMissing, firstText };
  }
  const column: NumericColumn = { ...base, kind, values };
  if (kind === "int" && blocks.some((block) => block.beyondSafe))
    column.exact = Array.from(values, (_, row) => BigInt(base.cell(row)));
  return column;
}

/** Returns the common type of several types; `none` if there is none. */
export function joined<Type extends string>(kinds: ReadonlySet<Type>, none: Type): Type | "float" | "mixed" {
  const [first = none] = kinds;
  if (kinds.size <= 1) return first;
  return [...kinds].every((kind) => kind === "int" || kind === "float") ? "float" : "mixed";
}

// Kinds of cells. An integer is also a float, and a missing cell fits every type.
const [INT, FLOAT, MISSING, BOOLEAN, TEXT] = [0, 1, 2, 3, 4];

/** `firstText`: -1 if there is none. `beyondSafe`: a double cannot hold some value exactly. */
function inferBlock(reader: CellReader, values: Float64Array, start: number, end: number) {
  const counts = [0, 0, 0, 0, 0];
  let [overflowAt, firstNoInt, firstText] = [-1, -1, -1];
  let beyondSafe = false;
  for (let row = start; row < end; row++) {
    let type = reader.read(row);
    values[row] = reader.value;
    if (type === INT) {
      if (overflowAt < 0 && reader.isBeyondInt64) overflowAt = row;
      if (Math.abs(reader.value) > Number.MAX_SAFE_INTEGER) beyondSafe = true;
      // An integer of more than 308 digits is not a float either.
      if (reader.value === Infinity) type = TEXT;
    } else if (type !== MISSING && firstNoInt < 0) firstNoInt = row;
    counts[type]!++;
    if (firstText < 0 && (type === TEXT || type === BOOLEAN)) firstText = row;
  }
  const missing = counts[MISSING]!;
  const kindOf = (): Kind => {
    if (firstNoInt < 0) return missing > 0 ? "float" : "int";
    if (counts[BOOLEAN]! === 0 && counts[TEXT]! === 0) return "float";
    if (counts[BOOLEAN]! + missing === end - start) return missing > 0 ? "mixed" : "bool";
    return "text";
  };
  const overflows = overflowAt >= 0 && (firstNoInt < 0 || overflowAt < firstNoInt);
  const kind = (overflows ? inferUint64(reader, start, end) : undefined) ?? kindOf();
  return { kind, firstText: firstText < 0 ? overflowAt : firstText, beyondSafe };
}

/** Returns pandas' type for an integer beyond int64 that precedes any cell that is not an integer. Undefined: pandas tries floats. */
function inferUint64(reader: CellReader, start: number, end: number): Kind | undefined {
  let [large, negative, missing] = [false, false, false];
  for (let row = start; row < end; row++) {
    const type = reader.read(row);
    if (type === MISSING) missing = true;
    // pandas only looks at the sign.
    else if (reader.isNegative) negative = true;
    else if (type !== INT) return undefined;
    else if (reader.isBeyondUint64) return "text";
    else if (reader.isBeyondInt64) large = true;
  }
  if (large && (negative || missing)) return "textWithoutMissing";
  return negative ? "text" : "int";
}

/** Powers of ten that a double holds exactly. */
const exactPowers = Float64Array.from({ length: 23 }, (_, i) => 10 ** i);

/** Reads one column's cells like pandas' converters. */
class CellReader {
  /** Value of the last cell; NaN unless the cell is INT, FLOAT or BOOLEAN. */
  value = Number.NaN;
  /** Whether the last cell begins with a minus. */
  isNegative = false;
  isBeyondInt64 = false;
  isBeyondUint64 = false;
  readonly #cells: Cells;
  readonly #at: number;

  constructor(cells: Cells, at: number) {
    this.#cells = cells;
    this.#at = at;
  }

  text(row: number): string {
    const { stream, ends, rowStarts } = this.#cells;
    const i = rowStarts[row]! + this.#at;
    if (i >= rowStarts[row + 1]!) return "";
    return cellText(stream, ends, i);
  }

  /** @returns the kind of the cell; `value` has its value */
  read(row: number): number {
    const { stream, ends, rowStarts } = this.#cells;
    const i = rowStarts[row]! + this.#at;
    this.value = Number.NaN;
    this.isNegative = false;
    // A short row ends with missing cells.
    if (i >= rowStarts[row + 1]!) return MISSING;
    const end = ends[i]!;
    let at = i === 0 ? 0 : ends[i - 1]!;
    if (at === end) return MISSING;
    const start = at;
    while (at < end && isSpace(stream[at]!)) at++;
    let c = stream[at]!;
    const negative = c === 45;
    this.isNegative = negative;
    if (negative || c === 43) c = stream[++at]!;
    let mantissa = 0;
    let digits = 0;
    const intStart = at;
    for (; at < end && c >= 48 && c <= 57; c = stream[++at]!) {
      mantissa = mantissa * 10 + (c - 48);
      digits++;
    }
    const intEnd = at;
    let exponent = 0;
    let isInt = true;
    if (at < end && c === 46) {
      isInt = false;
      c = stream[++at]!;
      for (; at < end && c >= 48 && c <= 57; c = stream[++at]!) {
        mantissa = mantissa * 10 + (c - 48);
        digits++;
        exponent--;
      }
    }
    if (digits === 0) return this.#readWord(row);
    if (at < end && (c === 101 || c === 69)) {
      isInt = false;
      c = stream[++at]!;
      const negativeExponent = at < end && c === 45;
      if (at < end && (c === 45 || c === 43)) c = stream[++at]!;
      let written = 0;
      const exponentStart = at;
      for (; at < end && c >= 48 && c <= 57; c = stream[++at]!) written = Math.min(written * 10 + (c - 48), 99_999);
      if (at === exponentStart) return this.#readWord(row);
      exponent += negativeExponent ? -written : written;
    }
    const numberEnd = at;
    while (at < end && isSpace(stream[at]!)) at++;
    // A NUL byte ends the cell.
    if (at < end && stream[at] !== 0) return this.#readWord(row);
    let value = mantissa;
    if (mantissa <= Number.MAX_SAFE_INTEGER && exponent >= -22 && exponent <= 22)
      // Both factors are exact, so the result is rounded once.
      value = exponent < 0 ? mantissa / exactPowers[-exponent]! : mantissa * exactPowers[exponent]!;
    else value = Math.abs(Number(stream.toString("latin1", start, numberEnd)));
    if (isInt) {
      this.isBeyondInt64 = this.isBeyondUint64 = value > 1e20;
      if (value >= 2 ** 63 && value <= 1e20) this.#compareWithInt64(stream.subarray(intStart, intEnd), negative);
    }
    // pandas 2.2 treats a number that overflows as text, unless it is negative.
    if (!isInt && value === Infinity && !negative) return TEXT;
    this.value = negative ? -value : value;
    return isInt ? INT : FLOAT;
  }

  #compareWithInt64(digits: Buffer, negative: boolean): void {
    const exact = BigInt(digits.toString("latin1"));
    this.isBeyondInt64 = exact > (negative ? 2n ** 63n : 2n ** 63n - 1n);
    this.isBeyondUint64 = exact >= 2n ** 64n;
  }

  #readWord(row: number): number {
    const text = this.text(row);
    if (missingTokens.has(text)) return MISSING;
    const word = /^[+-]?inf(inity)?$|^true$|^false$/i.exec(text)?.[0].toLowerCase();
    if (word === undefined) return TEXT;
    if (word === "true" || word === "false") {
      this.value = word === "true" ? 1 : 0;
      return BOOLEAN;
    }
    this.value = word.startsWith("-") ? -Infinity : Infinity;
    return FLOAT;
  }
}

function isSpace(c: number): boolean {
  return c === 32 || (c >= 9 && c <= 13);
}
