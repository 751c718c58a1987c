/** Tables as spreadsheets and other tools write them. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import AdmZip from "adm-zip";
import { type InitOptions, initTask } from "./init.ts";
import { openTask } from "./task.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-tables-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let made = 0;

function init(bytes: string | Buffer, change: Partial<InitOptions> = {}) {
  made++;
  const from = join(folder, `${made}.csv`);
  writeFileSync(from, bytes);
  const directory = join(folder, `task-${made}`);
  const options = { from, target: "price", metric: "RMSE", testShare: 0.25, seed: 0, ...change } as const;
  const said = initTask(directory, options).join("\n");
  const read = (path: string) =>
    readFileSync(join(directory, "prepared", path), "utf8")
      .trimEnd()
      .split("\n");
  return {
    directory,
    said,
    rows: [...read("public/train.csv").slice(1), ...read("private/answers.csv").slice(1)],
    read,
  };
}

const rowsOf = (count: number, row: (row: number) => string) =>
  Array.from({ length: count }, (_, i) => row(i)).join("\n");
const plain = `id,size,price\n${rowsOf(20, (row) => `${row},größe ${row},${row}.5`)}\n`;
const zipOf = (files: Record<string, string>) => {
  const zip = new AdmZip();
  for (const [name, text] of Object.entries(files)) zip.addFile(name, Buffer.from(text));
  return zip.toBuffer();
};
const utf16 = Buffer.from(plain, "utf16le");

const readable: [name: string, bytes: string | Buffer, change?: Partial<InitOptions>][] = [
  ["gz", gzipSync(plain)],
  ["zst", zstdCompressSync(plain)],
  ["a zip with one table", zipOf({ "folder/table.csv": plain, "__MACOSX/table.csv": "x", "about.md": "x" })],
  ["UTF-16 with a mark", Buffer.concat([Buffer.from([0xff, 0xfe]), utf16])],
  ["UTF-16, big endian", Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]).swap16()],
  ["UTF-16 without a mark", utf16],
  ["UTF-8 with a mark", `\ufeff${plain}`],
  ["latin-1", Buffer.from(plain, "latin1"), { encoding: "latin1" }],
  ["semicolons and decimal commas", plain.replaceAll(",", ";").replaceAll(".", ",")],
  ["a first line that says what delimits", `sep=;\r\n${plain.replaceAll(",", ";")}`],
  ["tabs", plain.replaceAll(",", "\t")],
  ["vertical bars", plain.replaceAll(",", "|")],
  ["a comma at the end of each row", plain.replaceAll(/(\d)\n/g, "$1,\n")],
  ["a comma at the end of each line", plain.replaceAll("\n", ",\n")],
];
for (const [name, bytes, change] of readable)
  test(`a table is read as it is meant: ${name}`, () => {
    const expected = init(plain);
    const found = init(bytes, change);
    assert.deepEqual(found.rows, expected.rows);
    assert.deepEqual(openTask(found.directory).grader, { ...openTask(expected.directory).grader });
  });

test("what was read otherwise than it stands there is said", () => {
  const { said } = init(plain.replaceAll(",", ";").replaceAll(".", ",").replaceAll("\n", ";\n"));
  assert.match(said, /\.csv is delimited by semicolons; the task's files by commas/);
  assert.match(said, /^1 column without a name and without a value: left out$/m);
  assert.match(said, /^price has decimal commas; the task's files have points$/m);
});

test("decimal commas are read with points between thousands, and holes", () => {
  const prices = ["1.234,5", "1.000", "-0,25", "", "7"];
  const { rows } = init(`id;price\n${rowsOf(20, (row) => `${row};${prices[row % 5]}`)}`);
  assert.deepEqual(new Set(rows.map((row) => row.split(",")[1])), new Set(["1234.5", "1000", "-0.25", "7"]));
});

const priced = (price: (row: number) => string, delimiter = ",") =>
  ["id", "price"].join(delimiter) + rowsOf(20, (row) => `\n${row}${delimiter}${price(row)}`).replaceAll("\n\n", "\n");
const refused: [name: string, bytes: string | Buffer, message: RegExp, change?: Partial<InitOptions>][] = [
  [
    "latin-1",
    Buffer.from(plain, "latin1"),
    /: is not UTF-8 text; give its encoding, for example --encoding windows-1252/,
  ],
  [
    "no such encoding",
    plain,
    /^--encoding latin-77: there is no such encoding; give for example windows-1252/,
    { encoding: "latin-77" },
  ],
  [
    "another encoding",
    Buffer.from(plain, "latin1"),
    /: is not utf-8 text; give another --encoding$/,
    { encoding: "utf-8" },
  ],
  ["a broken gz", gzipSync(plain).subarray(0, 40), /: cannot be unpacked \(.*\); fetch the file again, or unpack it$/],
  [
    "a zip with two tables",
    zipOf({ "a.csv": plain, "b.csv": plain }),
    /: holds 2 tables \(a\.csv, b\.csv\); unpack it with: unzip \S+$/,
  ],
  ["a zip without a table", zipOf({ "a.png": "x" }), /: holds 0 tables \(a\.png\); unpack it with: unzip /],
  [
    "xlsx",
    zipOf({ "xl/workbook.xml": "x" }),
    /: is an Excel workbook; convert it with: python3 -c '.*read_excel\(sys\.argv\[1\]\).*' \S+ table\.csv \(needs pandas and openpyxl\)$/,
  ],
  [
    "parquet",
    "PAR1\x00",
    /: is a Parquet file; convert it with: python3 -c 'import pandas, sys; pandas\.read_parquet.* \(needs pandas and pyarrow\)$/,
  ],
  ["xls", Buffer.from([0xd0, 0xcf, 0x11, 0xe0]), /: is an old Excel workbook; convert it with: python3 .*xlrd\)$/],
  ["bzip2", Buffer.from("BZh91AY&SY"), /: is packed with bzip2; unpack it with: bunzip2 -k /],
  ["xz", Buffer.from("\xfd7zXZ\0", "latin1"), /: is packed with xz; unpack it with: xz -dk /],
  ["tar.gz", gzipSync(`${"\0".repeat(257)}ustar`), /: is a tar archive; unpack it with: tar -xf /],
  ["JSON", ' [{"price": 1}]', /: is JSON; convert it with: python3 .*read_json\(sys\.argv\[1\]\)/],
  ["lines of JSON", '{"price": 1}\n', /: is JSON; convert it with: python3 .*read_json\(sys\.argv\[1\], lines=True\)/],
  ["a login page", "<!DOCTYPE html><html>", /: is a web page or XML; fetch the table itself/],
  [
    "a pointer",
    "version https://git-lfs.github.com/spec/v1\n",
    /: is a Git LFS pointer, not the file itself; fetch the file with: git lfs pull$/,
  ],
  [
    "names missing in the header",
    "size,price\n1,2,3\n4,5,6\n",
    /: the header has 2 names, but rows have 3 cells; add the names that are missing/,
  ],
  ["one longer row", "id,price\n1,2\n1,2,3\n", /row 2 has 3 fields, more than the 2 of the rows before it/],
  [
    "dollars",
    priced((row) => `"$1,0${row + 10}"`),
    /--metric RMSE takes numbers, but column price of \S+ has "\$1,010" in row 1 and no numbers in 19 other rows; write 1010 there, because currency signs, units .*, or give a metric of labels/,
  ],
  ["percent", priced((row) => `${row} %`), /has "0 %" in row 1 and no numbers in 19 other rows; write 0 there/],
  ["units", priced((row) => `${row}.500 kg`), /has "0\.500 kg" in row 1 and .*; write 0\.500 there/],
  ["accounting", priced((row) => `"(1,0${row + 10}.5)"`), /; write -1010\.5 there/],
  ["decimal commas in quotes", priced((row) => `"${row},5 €"`), /; write 0\.5 there/],
  ["codes", priced((row) => `A${row}`), /has "A0" in row 1; give a metric of labels/],
  [
    "decimal commas and a question mark",
    priced((row) => (row === 5 ? "?" : `${row},5`), ";"),
    /has "\?" in row 6; write a number there, or nothing/,
  ],
  [
    "one question mark",
    priced((row) => (row === 5 ? "?" : `${row}`)),
    /has "\?" in row 6; write a number there, or nothing: rows without a price are left out$/,
  ],
  [
    "a comma that may separate thousands",
    priced((row) => `1,0${row + 10}`, ";"),
    /has "1,010" in row 1 .*; write 1010 or 1\.010 there/,
  ],
  [
    "one class",
    priced(() => "same"),
    /^--target price: every row of \S+ has same, so there is nothing to predict; choose another column$/,
    { metric: "Accuracy" },
  ],
  ["one number", priced(() => "5"), /^--target price: every row of \S+ has 5, so there is nothing to predict/],
  [
    "a blank in the header",
    plain.replace("price", "TOTAL VALUE "),
    /^--target TOTAL VALUE: \S+ has no such column; it has "TOTAL VALUE ", with a blank at the end; rename it there, or give --target 'TOTAL VALUE '$/,
    { target: "TOTAL VALUE" },
  ],
  [
    "accents as separate characters",
    plain.replace("price", "cafe\u0301"),
    /^--target café: .* has no such column; it has "cafe\\u0301", with accents in another Unicode form; rename it there, or give --target \$'cafe\\u0301'$/,
    { target: "café" },
  ],
  ["another id", plain.replace("id", "Id"), /^--id id: .* it has "Id", with other capitals; .* --id Id$/, { id: "id" }],
  [
    "no such column",
    plain.replace("size", "size "),
    /has no such column; it has id, "size ", price$/,
    { target: "cost" },
  ],
  [
    "an id twice",
    "id,price\n1,2\n2,3\n01,4\n",
    /column id does not tell rows apart, 01 is in rows 1 and 3; name another one with --id, or rename it$/,
  ],
  [
    "an id missing",
    "id,price\n1,2\n,3\n3,4\n",
    /column id does not tell rows apart, row 2 has none; name another one with --id/,
  ],
];
for (const [name, bytes, message, change] of refused)
  test(`a table is refused with the remedy: ${name}`, () => {
    assert.throws(
      () => init(bytes, change),
      (error: Error) => {
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /\n/);
        return true;
      },
    );
  });

const large = 1712345678901234567n;

test("ids beyond 2^53 tell rows apart, and constant labels among them do not count as right", () => {
  const task = openTask(init(`id,price\n${rowsOf(40, (row) => `${large + 4n * BigInt(row)},${row / 2}`)}`).directory);
  assert.equal(task.rows, 10);
  const labels = init(`id,price\n${rowsOf(40, (row) => `${row},${large + BigInt(row % 2)}`)}`, { metric: "Accuracy" });
  const sample = readFileSync(join(labels.directory, "prepared/public/sample_submission.csv"));
  const { score } = openTask(labels.directory).grade(sample);
  assert.ok(score! > 0 && score! < 1, `${score}`);
});

/** 36 of 60 rows have None, 12 NA. */
const disorders = (others: string) =>
  `id,disorder\n${rowsOf(60, (row) => `${row},${["None", "None", "NA", "None", others.split("/")[row % 2]][row % 5]}`)}\n,`.replace(
    /,$/,
    "60,\n",
  );
const ofDisorders = (others: string, change: Partial<InitOptions> = {}) =>
  init(disorders(others), { target: "disorder", metric: "Accuracy", ...change });

test("rows whose label means a missing value are counted, and a switch keeps them", () => {
  const lost = ofDisorders("Mild/Severe");
  assert.match(
    lost.said,
    /^warning {3}49 of 61 rows are left out, because pandas reads their disorder as missing \(None 36 times, NA 12 times\); if it is a label, give --keep-missing-labels$/m,
  );
  assert.equal(lost.rows.length, 12);
  for (const metric of ["Accuracy", "LogLoss"] as const) {
    const { said, rows, directory } = ofDisorders("Mild/Severe", { keepMissingLabels: true, metric });
    assert.match(said, /^1 rows without a disorder were left out$/m);
    assert.doesNotMatch(said, /warning/);
    assert.equal(rows.length, 60);
    const task = openTask(directory);
    assert.match(
      task.description,
      /The label None, NA is no missing value: read `train\.csv` with `keep_default_na=False`/,
    );
    const { valid, guards } = task.grade(readFileSync(task.answersPath));
    assert.deepEqual([valid, guards], [true, ["perfect"]]);
  }
});

test("the switch that keeps labels is named if too few rows are left", () => {
  const bytes = `id,y\n${rowsOf(20, (row) => `${row},${row < 2 ? "x" : "NA"}`)}`;
  assert.throws(
    () => init(bytes, { target: "y", metric: "Accuracy" }),
    /: 2 rows with a y are too few to split; 18 of 20 rows are left out, .*, give --keep-missing-labels$/,
  );
});

test("the switch that keeps labels is named if only one label is left, and refused where it means nothing", () => {
  assert.throws(
    () => ofDisorders("Mild/Mild"),
    /: --target disorder: every row with a label has Mild, and 49 of 61 rows are left out, .*; if it is a label, give --keep-missing-labels$/,
  );
  const keepMissingLabels = true;
  assert.throws(
    () => init(plain, { keepMissingLabels }),
    /--keep-missing-labels is for labels of text, but --metric RMSE is none of labels; leave it out$/,
  );
  assert.throws(
    () => init(plain, { keepMissingLabels, metric: "Accuracy" }),
    /--keep-missing-labels is for labels of text, but column price of \S+ has numbers; leave it out$/,
  );
});

test("NA in a column of numbers is a missing value", () => {
  const { said } = init(priced((row) => (row < 3 ? "NA" : row === 3 ? "" : `${row}`)));
  assert.match(said, /^4 rows without a price were left out \(NA 3 times\)$/m);
  assert.doesNotMatch(said, /warning/);
});
