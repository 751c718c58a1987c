import assert from "node:assert/strict";
import { test } from "node:test";
import { isNumeric } from "./column.ts";
import { type Frame, type FrameLimits, readFrame } from "./frame.ts";

const limits: FrameLimits = { bytes: 2 ** 26, rows: 1_000_000 };

function frameOf(text: string | Buffer, more: Partial<FrameLimits> = {}): Frame {
  const frame = readFrame(Buffer.from(text), { ...limits, ...more });
  assert.ok(!("reason" in frame), JSON.stringify(frame));
  return frame;
}

/** Returns the cells of each column. */
const cells = (frame: Frame) =>
  frame.names.map((_, place) => Array.from({ length: frame.rows }, (_, row) => frame.columnAt(place).cell(row)));

/** How pandas 2.2 reads the text: column names and cells. */
const tables: [string, string, string[], string[][]][] = [
  ["plain", "a,b\n1,2\n3,4\n", ["a", "b"], [["1", "3"], ["2", "4"]]], // biome-ignore format: a row a case
  ["no last line feed", "a\n1\n2", ["a"], [["1", "2"]]],
  ["carriage returns", "a,b\r1,2\r3,4", ["a", "b"], [["1", "3"], ["2", "4"]]], // biome-ignore format: a row a case
  ["both", "a\r\n1\r\n\r\n2\r\n", ["a"], [["1", "2"]]],
  ["blank lines", "\n \t\na\n\n1\n  \n2\n\t", ["a"], [["1", "2"]]],
  ["a blank in front is text", "a\n 1\n", ["a"], [[" 1"]]],
  ["a comma after an empty line's carriage return is lost", "a\n1\n\r,3\n", ["a"], [["1", "3"]]],
  ["a row that starts with a comma", "a,b\r,1\r", ["a", "b"], [[""], ["1"]]],
  ["byte order mark", "\ufeffa\n1\n", ["a"], [["1"]]],
  ["quotes", 'a,"b ""c"""\n"1,\n2","""x"""\n', ["a", 'b "c"'], [["1,\n2"], ['"x"']]],
  ["text after quotes", 'a\n"1"2"3\n', ["a"], [['12"3']]],
  ["quote inside", 'a\n1"2\n', ["a"], [['1"2']]],
  ["short rows", "a,b,c\n1\n1,2\n", ["a", "b", "c"], [["1", "1"], ["", "2"], ["", ""]]], // biome-ignore format: a row a case
  ["a longer first row makes an index", "a,b\n7,1,2\n8,3\n", ["a", "b"], [["1", "3"], ["2", ""]]], // biome-ignore format: a row a case
  ["NUL ends a cell, and a name", "a\0x\n1\x002\n", ["a"], [["1"]]],
  ["names again", "x,x,x.1,x\n1,2,3,4\n", ["x", "x.2", "x.1", "x.3"], [["1"], ["2"], ["3"], ["4"]]],
  ["no name", ",a,\n1,2,3\n", ["Unnamed: 0", "a", "Unnamed: 2"], [["1"], ["2"], ["3"]]],
  ["a given name like that of none", ",Unnamed: 0\n1,2\n", ["Unnamed: 0.1", "Unnamed: 0"], [["1"], ["2"]]],
  ["header alone", "a,b\n", ["a", "b"], [[], []]],
];

test("a frame has the rows and the column names that pandas reads", async (t) => {
  for (const [name, text, names, columns] of tables)
    await t.test(name, () => {
      const frame = frameOf(text);
      assert.deepEqual([frame.names, cells(frame)], [names, columns]);
    });
});

test("a frame reads other delimiters, and rows that are longer than the header", async (t) => {
  const table: [string, string, Partial<FrameLimits>, string[], string[][], number][] = [
    [
      "semicolons",
      'a;b\n1,5;"x;y"\n\n;2\n',
      { delimiter: ";" },
      ["a", "b"],
      [
        ["1,5", ""],
        ["x;y", "2"],
      ],
      0,
    ],
    [
      "tabs",
      "a\tb\n\t2\n \n3\t\n",
      { delimiter: "\t" },
      ["a", "b"],
      [
        ["", "3"],
        ["2", ""],
      ],
      0,
    ],
    ["bars", "a|b\r\n1|2\r\n", { delimiter: "|" }, ["a", "b"], [["1"], ["2"]], 0],
    ["an index", "a,b\n7,1,2\n", {}, ["a", "b"], [["1"], ["2"]], 1],
    ["no index", "a,b\n7,1,2\n", { withoutIndex: true }, ["a", "b"], [["7"], ["1"]], 1],
  ];
  for (const [name, text, more, names, columns, unnamed] of table)
    await t.test(name, () => {
      const frame = frameOf(text, more);
      assert.deepEqual([frame.names, cells(frame), frame.unnamed], [names, columns, unnamed]);
    });
});

test("a frame refuses the texts that pandas refuses", async (t) => {
  const table: [string, string | Buffer, string][] = [
    ["nothing", "", "emptyFile"],
    ["blanks", " \n\t\n", "emptyFile"],
    ["an open quote", 'a\n"1\n', "unclosedQuote"],
    ["a later row that is longer", "a,b\n1,2\n1,2,3\n", "longRow"],
    ["longer than the first, which is longer than the header", "a\n1,2\n1,2,3\n", "longRow"],
    ["bytes that are not UTF-8", Buffer.from([97, 10, 0xff]), "notUtf8"],
    ["surrogates", Buffer.from([97, 10, 0xed, 0xa0, 0x80]), "notUtf8"],
    ["a blank after a carriage return", "a\r1\r2\r 3\r", "carriageReturn"],
  ];
  for (const [name, bytes, code] of table)
    await t.test(name, () => {
      const read = readFrame(Buffer.from(bytes), limits);
      assert.equal("reason" in read && read.reason.code, code);
    });
  assert.equal(
    (readFrame(Buffer.from("a\n1\n2\n"), { ...limits, rows: 1 }) as { reason: object }).reason !== undefined,
    true,
  );
});

/** A column's cells, its type, and its values if they are numbers. */
const types: [string[], string, number[]?][] = [
  [["1", "005", " 7\t", "+3", "-0"], "int", [1, 5, 7, 3, -0]],
  [["1", ""], "float", [1, Number.NaN]],
  [["1", "NA", "nan", "<NA>", "-1.#IND"], "float", [1, Number.NaN, Number.NaN, Number.NaN, Number.NaN]],
  [["", "NULL"], "float", [Number.NaN, Number.NaN]],
  [["1.", ".5", "1e3", "-2E-1 ", "\v3"], "float", [1, 0.5, 1000, -0.2, 3]],
  [
    ["0.1", "123456789012345678901234567890", "1.7976931348623157e308"],
    "float",
    [0.1, 1.2345678901234568e29, 1.7976931348623157e308],
  ],
  [["0.30000000000000004", "2.5e-324", "1e-400"], "float", [0.30000000000000004, 5e-324, 0]],
  [["inf", "-Infinity", "+INF", "-1e999"], "float", [Infinity, -Infinity, Infinity, -Infinity]],
  [["0.5", "1e999"], "text"],
  [[" inf"], "text"],
  [["nAn"], "text"],
  [["1_0"], "text"],
  [["1e"], "text"],
  [["0x1"], "text"],
  [["1", "x"], "text"],
  [["True", "FALSE", "tRuE"], "bool", [1, 0, 1]],
  [["True", ""], "mixed"],
  [["True", "1"], "text"],
  [[" True"], "text"],
  [["9223372036854775807"], "int", [2 ** 63]],
  [["9223372036854775808", "1"], "int", [2 ** 63, 1]],
  [["9223372036854775808", "-1"], "text"],
  [["9223372036854775808", ""], "text"],
  [["9223372036854775808", "0.5"], "float", [2 ** 63, 0.5]],
  [["0.5", "99999999999999999999"], "float", [0.5, 1e20]],
  [["99999999999999999999", "0.5"], "text"],
];

test("a frame's columns have the types that pandas finds", async (t) => {
  for (const [column, kind, values] of types)
    await t.test(column.join(" "), () => {
      const read = frameOf(`x,y\n${column.map((cell) => `${cell},`).join("\n")}\n`).column("x")!;
      assert.equal(read.kind, kind);
      assert.deepEqual(isNumeric(read) ? [...read.values] : undefined, values);
    });
  const conflict = frameOf("x,y\n9223372036854775808,\n,\n").column("x")!;
  assert.equal(!isNumeric(conflict) && conflict.isMissing(1), false, "pandas leaves the text as it is");
});

test("a column's types are found by blocks of rows unless the column is read whole", () => {
  const rows = (last: string) => `x,y\n${"1,\n".repeat(300_000)}${last},\n`;
  const kindOf = (last: string, more: Partial<FrameLimits> = {}) => frameOf(rows(last), more).column("x")!.kind;
  assert.equal(kindOf("2"), "int");
  assert.equal(kindOf("2.5"), "float");
  assert.equal(kindOf("a"), "mixed");
  assert.equal(kindOf("a", { wholeColumns: true }), "text");
});
