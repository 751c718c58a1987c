/** The type of a column as pandas infers it: int64 (or uint64), float64, bool, or text; missing cells are NaN. */
import { missingTokens } from "./python-text.ts";

/** Where the cells of the rows are: cell i of row r is `stream[ends[s - 1] .. ends[s])` with s = `rowStarts[r] + i`. */
export interface Cells {
  /** The cells' bytes without delimiters and quotes, one after the other. */
  stream: Buffer;
  ends: Uint32Array;
  /** One more than there are rows. */
  rowStarts: Uint32Array;
}

interface ColumnBase {
  name: string;
  rows: number;
  /** The cell as it is written. */
  cell: (row: number) => string;
}

export interface NumericColumn extends ColumnBase {
  /** `bool` has 1 for True. A column with a missing cell is never `int`. */
  kind: "int" | "float" | "bool";
  /** NaN where the cell is missing. */
  values: Float64Array;
  /** Of an `int` column with values beyond 2^53. */
  exact?: bigint[];
}

export interface TextColumn extends ColumnBase {
  /** `mixed`: True and False with missing cells, or blocks of rows with types that do not agree. */
  kind: "text" | "mixed";
  /** True where pandas has NaN in place of a text. */
  isMissing: (row: number) => boolean;
  /** The first row whose cell is no number. */
  firstText: number;
}

export type Column = NumericColumn | TextColumn;

/** The text of cell i, which pandas ends at a NUL byte. */
export function cellText(stream: Buffer, ends: Uint32Array, i: number): string {
  const start = i === 0 ? 0 : ends[i - 1]!;
  let end = start;
  while (end < ends[i]! && stream[end] !== 0) end++;
  return stream.toString("utf8", start, end);
}

export function isNumeric(column: Column): column is NumericColumn {
  return column.kind !== "text" && column.kind !== "mixed";
}

type Kind = Column["kind"] | "textWithoutMissing";

/** @param at place of the column in the rows @param blockRows rows that a type is inferred over at once */
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

/** The type of values of several types; `none` of none. */
export function joined<Type extends string>(kinds: ReadonlySet<Type>, none: Type): Type | "float" | "mixed" {
  const [first = none] = kinds;
  if (kinds.size <= 1) return first;
  return [...kinds].every((kind) => kind === "int" || kind === "float") ? "float" : "mixed";
}

// What a cell is. An integer is a float too, and a missing cell is anything.
const [INT, FLOAT, MISSING, BOOLEAN, TEXT] = [0, 1, 2, 3, 4];

/** `firstText`: -1 if there is none. `beyondSafe`: some value is beyond what a double holds exactly. */
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
      // An integer of more than 308 digits is no float either.
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

/** What pandas makes of an integer beyond int64 before any cell that is no integer; undefined: it tries floats. */
function inferUint64(reader: CellReader, start: number, end: number): Kind | undefined {
  let [large, negative, missing] = [false, false, false];
  for (let row = start; row < end; row++) {
    const type = reader.read(row);
    if (type === MISSING) missing = true;
    // pandas looks no further than the sign.
    else if (reader.isNegative) negative = true;
    else if (type !== INT) return undefined;
    else if (reader.isBeyondUint64) return "text";
    else if (reader.isBeyondInt64) large = true;
  }
  if (large && (negative || missing)) return "textWithoutMissing";
  return negative ? "text" : "int";
}

/** Powers of ten that are exact in a double. */
const exactPowers = Float64Array.from({ length: 23 }, (_, i) => 10 ** i);

/** Reads the cells of one column as pandas' converters do. */
class CellReader {
  /** Of the cell that was read last; NaN unless it is INT, FLOAT or BOOLEAN. */
  value = Number.NaN;
  /** Whether its sign is a minus, whatever follows. */
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

  /** @returns what the cell is; its value is `value` */
  read(row: number): number {
    const { stream, ends, rowStarts } = this.#cells;
    const i = rowStarts[row]! + this.#at;
    this.value = Number.NaN;
    this.isNegative = false;
    // A row that is too short ends with missing cells.
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
      // Both are exact, so that the result is rounded once.
      value = exponent < 0 ? mantissa / exactPowers[-exponent]! : mantissa * exactPowers[exponent]!;
    else value = Math.abs(Number(stream.toString("latin1", start, numberEnd)));
    if (isInt) {
      this.isBeyondInt64 = this.isBeyondUint64 = value > 1e20;
      if (value >= 2 ** 63 && value <= 1e20) this.#compareWithInt64(stream.subarray(intStart, intEnd), negative);
    }
    // pandas 2.2 takes a number that overflows for text, but not a negative one.
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
