/** Reads a table's file to UTF-8 text: unpacks archives, decodes other encodings, and says how to convert what it does not read. */
import { isUtf8 } from "node:buffer";
import { readFileSync } from "node:fs";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import AdmZip from "adm-zip";
import { TaskError } from "./errors.ts";

/** The largest table that is read, also after it was unpacked. */
export const maxTableBytes = 2 ** 31;

/** Bytes that are decoded at once, because a text of JavaScript has at most 2^29 characters. */
const decodedBytes = 2 ** 24;
/** Bytes of a file's head that show its format and encoding. */
const shownBytes = 4096;

/**
 * Returns the text of a table as UTF-8.
 *
 * @param encoding a label of the WHATWG encoding standard, for example windows-1252. Absent: UTF-8, or UTF-16 if the bytes show it
 * @throws TaskError in one line that names the remedy
 */
export function readTableFile(from: string, encoding: string | undefined): Buffer {
  const bytes = unpacked(readBytes(from), from);
  const how = conversionOf(bytes, from);
  if (how) throw refused(from, how);
  const used = encoding ?? utf16Of(bytes);
  if (used !== undefined) return decoded(bytes, used, from);
  if (isUtf8(bytes)) return bytes;
  throw refused(
    from,
    "is not UTF-8 text; give its encoding, for example --encoding windows-1252 (Western Europe, also for latin-1)",
  );
}

const refused = (from: string, why: string, cause?: unknown) =>
  new TaskError("folder", `--from ${from}: ${why}`, cause);

function readBytes(from: string): Buffer {
  try {
    return readFileSync(from);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why =
      code === "ENOENT"
        ? "there is no such file; check the path"
        : code === "EISDIR"
          ? "is a folder; give a .csv file"
          : code === "ERR_FS_FILE_TOO_LARGE"
            ? "is larger than 2 GiB; give a part of it"
            : message;
    throw refused(from, why, cause);
  }
}

const startsWith = (bytes: Buffer, text: string) => bytes.subarray(0, text.length).equals(Buffer.from(text, "latin1"));

function unpacked(bytes: Buffer, from: string): Buffer {
  const most = { maxOutputLength: maxTableBytes };
  try {
    if (startsWith(bytes, "\x1f\x8b")) return gunzipSync(bytes, most);
    if (startsWith(bytes, "\x28\xb5\x2f\xfd")) return zstdDecompressSync(bytes, most);
    if (startsWith(bytes, "PK\x03\x04")) return unzipped(bytes, from);
  } catch (cause) {
    if (cause instanceof TaskError) throw cause;
    throw refused(from, `cannot be unpacked (${(cause as Error).message}); fetch the file again, or unpack it`, cause);
  }
  return bytes;
}

function unzipped(bytes: Buffer, from: string): Buffer {
  const entries = new AdmZip(bytes).getEntries();
  const names = entries.map(({ entryName }) => entryName);
  if (names.includes("xl/workbook.xml"))
    throw refused(from, `is an Excel workbook; ${pandas("read_excel", "openpyxl", from)}`);
  if (names.includes("content.xml"))
    throw refused(from, `is an OpenDocument file; ${pandas("read_excel", "odfpy", from)}`);
  const tables = entries.filter(
    ({ entryName, isDirectory }) =>
      !isDirectory && /\.(csv|tsv|txt)$/i.test(entryName) && !/^__MACOSX\//.test(entryName),
  );
  const [table, ...others] = tables;
  if (table === undefined || others.length > 0) {
    const found = (tables.length > 0 ? tables.map(({ entryName }) => entryName) : names).slice(0, 20).join(", ");
    throw refused(from, `holds ${tables.length} tables (${found}); unpack it with: unzip ${word(from)}`);
  }
  if (table.header.size > maxTableBytes)
    throw refused(from, `its table has more than ${maxTableBytes} bytes; give a part of it`);
  return table.getData();
}

/** Files that are recognised by their beginning: what they are, and how they become CSV. */
const formats: [start: RegExp, what: string, how: (from: string) => string][] = [
  [/^PAR1/, "a Parquet file", (from) => pandas("read_parquet", "pyarrow", from)],
  [/^ARROW1/, "a Feather file", (from) => pandas("read_feather", "pyarrow", from)],
  [/^\u00d0\u00cf.\u00e0/, "an old Excel workbook", (from) => pandas("read_excel", "xlrd", from)],
  [/^BZh/, "packed with bzip2", (from) => `unpack it with: bunzip2 -k ${word(from)}`],
  [/^\xfd7zXZ/, "packed with xz", (from) => `unpack it with: xz -dk ${word(from)}`],
  [/^7z\xbc\xaf/, "a 7z archive", (from) => `unpack it with: 7z x ${word(from)}`],
  [/^.{257}ustar/s, "a tar archive", (from) => `unpack it with: tar -xf ${word(from)}`],
  [
    /^SQLite format 3/,
    "an SQLite database",
    (from) => `write a table with: sqlite3 -csv -header ${word(from)} 'SELECT * FROM name' > table.csv`,
  ],
  [/^\s*\[\s*[[{]/, "JSON", (from) => pandas("read_json", undefined, from)],
  [/^\s*\{\s*"/, "JSON", (from) => pandas("read_json", undefined, from, ", lines=True")],
  [/^\s*<(!doctype|html|\?xml)/i, "a web page or XML", () => "fetch the table itself; its page may need a login"],
  [/^version https:\/\/git-lfs/, "a Git LFS pointer, not the file itself", () => "fetch the file with: git lfs pull"],
];

/** Returns what the file is and how it becomes CSV; undefined for text. */
function conversionOf(bytes: Buffer, from: string): string | undefined {
  const head = bytes.toString("latin1", 0, shownBytes);
  const known = formats.find(([start]) => start.test(head));
  return known && `is ${known[1]}; ${known[2](from)}`;
}

function pandas(read: string, needs: string | undefined, from: string, more = ""): string {
  const code = `import pandas, sys; pandas.${read}(sys.argv[1]${more}).to_csv(sys.argv[2], index=False)`;
  return `convert it with: python3 -c '${code}' ${word(from)} table.csv (needs pandas${needs ? ` and ${needs}` : ""})`;
}

/** Returns the text as one word of a shell's command line. */
export function word(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Returns the label of UTF-16 if the file has its byte order mark, or a zero in every second byte. */
function utf16Of(bytes: Buffer): string | undefined {
  if (startsWith(bytes, "\xff\xfe")) return "utf-16le";
  if (startsWith(bytes, "\xfe\xff")) return "utf-16be";
  const head = bytes.subarray(0, shownBytes);
  const zeros = (first: number) => head.filter((byte, i) => byte === 0 && i % 2 === first).length;
  const isMost = (count: number) => count > head.length / 4;
  return isMost(zeros(1)) ? "utf-16le" : isMost(zeros(0)) ? "utf-16be" : undefined;
}

function decoded(bytes: Buffer, encoding: string, from: string): Buffer {
  let decoder: InstanceType<typeof TextDecoder>;
  try {
    decoder = new TextDecoder(encoding, { fatal: true });
  } catch (cause) {
    const message = `--encoding ${encoding}: there is no such encoding; give for example windows-1252, utf-16le or shift_jis`;
    throw new TaskError("folder", message, cause);
  }
  const parts: Buffer[] = [];
  try {
    for (let at = 0; at < bytes.length; at += decodedBytes) {
      const stream = at + decodedBytes < bytes.length;
      parts.push(Buffer.from(decoder.decode(bytes.subarray(at, at + decodedBytes), { stream })));
    }
  } catch (cause) {
    throw refused(from, `is not ${encoding} text; give another --encoding`, cause);
  }
  return Buffer.concat(parts);
}
