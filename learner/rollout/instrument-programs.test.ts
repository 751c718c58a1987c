import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { MARKERS } from "../../proto/markers.ts";
import { instrument, verifyInstrumented } from "./instrument.ts";

/**
 * Programs written for the paper's tasks and others, and the forms of Python's syntax, each below `==== name`. A line `>>> marker` or
 * `>>> marker = name` shows where a marker must be inserted; no others may be.
 */
const FOLDER = new URL("../../test/fixtures/instrument/", import.meta.url);
const placed = /^(\s*)>>> ([a-z ]+?)(?: = (\w+))?$/;

for (const file of readdirSync(FOLDER).sort())
  describe(`Syntax instruments the programs of ${file}`, () => {
    const [, ...sections] = `\n${readFileSync(new URL(file, FOLDER), "utf8")}`.split("\n==== ");
    for (const section of sections) {
      const [name, ...lines] = section.replace(/\n$/, "").split("\n");
      it(name, () => {
        const program = `${lines.filter((line) => !placed.test(line)).join("\n")}\n`;
        const shown = (line: string) =>
          line.replace(
            placed,
            (_, indentation, marker, value) =>
              `${indentation}print("@@NONCE@@:${marker}"${value ? `, ${value}` : ""}, flush=True)`,
          );
        const result = instrument(program);
        assert.equal(result.program, `${lines.map(shown).join("\n")}\n`);
        const expected = new Set(lines.flatMap((line) => placed.exec(line)?.[2] ?? []));
        assert.deepEqual(
          result.markers,
          MARKERS.filter((marker) => expected.has(marker)),
        );
        assert.deepEqual(verifyInstrumented(program, result.program), result.markers);
        assert.equal(result.instrumenter, expected.size > 0 ? "Syntax" : "None");
        assert.equal(result.verificationFailures, 0);
      });
    }
  });

it("a program is instrumented in less than 5 ms of processor time", () => {
  const [, first] = readFileSync(new URL("syntax.txt", FOLDER), "utf8").split(/^==== .*\n/m);
  const program = first!.replace(/^>>> .*\n/gm, "").repeat(2);
  for (let i = 0; i < 50; i++) instrument(program);
  const before = process.cpuUsage().user;
  for (let i = 0; i < 50; i++) instrument(program);
  const milliseconds = (process.cpuUsage().user - before) / 50 / 1000;
  assert.ok(milliseconds < 5, `${milliseconds} ms`);
});
