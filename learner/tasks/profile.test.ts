import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { countRecords, profileBytes, profileFile } from "./profile.ts";

const folder = mkdtempSync(join(tmpdir(), "profile-"));
after(() => rmSync(folder, { recursive: true }));
const write = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const columns = (...facts: [string, string, number][]) =>
  facts.map(([name, type, missing]) => ({ name, type, missing }));

const tables: [string, string, string, unknown][] = [
  [
    "types and holes",
    "a.csv",
    'i,f,b,t,hole\n1,1.5,True,"x\ny",\n2,NA,False,NA,3\n',
    {
      columns: columns(["i", "int", 0], ["f", "float", 1], ["b", "bool", 0], ["t", "text", 1], ["hole", "float", 1]),
      profiledRows: 2,
      rows: 2,
    },
  ],
  ["a ragged row", "b.csv", "a,b\n1,2\n1,2,3\n", { problem: "row 2 has 3 fields, more than 2 before it" }],
  [
    "JSON",
    "c.json",
    '[{"a": 1, "b": null, "l": []}, {"a": 1.5, "b": "x", "o": {}}]',
    {
      columns: columns(["a", "float", 0], ["b", "text", 1], ["l", "list", 1], ["o", "object", 1]),
      profiledRows: 2,
      rows: 2,
    },
  ],
  ["JSON that is no list of records", "d.json", "[1]", undefined],
  ["another kind", "e.png", "x", undefined],
];
for (const [name, file, text, expected] of tables)
  test(`a file's profile has types and missing values: ${name}`, () => {
    const found = profileFile(write(file, text));
    if (found && "problem" in found) assert.match(found.problem, /row 2/);
    else assert.deepEqual(found, expected);
  });

test("broken JSON gives a profile with a problem and no exception", () => {
  const found = profileFile(write("f.json", "[{"));
  assert.ok(found && "problem" in found && /^it is not JSON: /.test(found.problem));
});

test("a large table's types come from its head, and all of its records are counted", () => {
  const record = `1,"a\n${"b".repeat(1000)}"\n`;
  const rows = Math.ceil(profileBytes / record.length) + 5;
  const path = write("large.csv", `id,text\n${record.repeat(rows)}`);
  assert.equal(countRecords(path), rows + 1);
  const found = profileFile(path);
  assert.ok(found && "columns" in found);
  assert.deepEqual(found.columns, columns(["id", "int", 0], ["text", "text", 0]));
  assert.equal(found.rows, rows);
  assert.ok(found.profiledRows < rows && found.profiledRows > rows - 10);
});

test("blank lines are no records, and the last record may lack its line break", () => {
  assert.equal(countRecords(write("g.csv", '\r\na\r\n\r\n"b\n\nc"\r\n\n"d""e"')), 3);
  assert.equal(countRecords(write("h.csv", "")), 0);
});
