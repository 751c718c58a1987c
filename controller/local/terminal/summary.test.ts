import assert from "node:assert/strict";
import { test } from "node:test";
import { errorLines, invalidLines } from "./summary.ts";

const error = (id: string, samples: number, program: string) => ({
  error: `error ${id}`,
  samples,
  example: { id, program },
});

test("The summary of a run without a valid program has the commonest errors with one program each", () => {
  const long = Array.from({ length: 30 }, (_, line) => `line ${line + 1}`).join("\n");
  const lines = errorLines(
    [error("a", 4, long), error("b", 1, "x = 1\n"), error("c", 1, "y"), error("d", 1, "z")],
    "runs/r",
  );
  assert.deepEqual(lines.slice(0, 4), [
    "No program was valid. The commonest errors:",
    "",
    "4 programs: error a (for example a)",
    "    line 1",
  ]);
  assert.deepEqual(lines.slice(27, 32), [
    "    line 25",
    "    … 5 more lines",
    "",
    "1 program: error b (for example b)",
    "    x = 1",
  ]);
  assert.deepEqual(lines.slice(-2), ["", "All of them: longrun samples runs/r --failed"]);
  assert.ok(!lines.some((line) => line.includes("error d")), "three are enough here");
  assert.deepEqual(errorLines([], "runs/r"), ["No program was valid."]);
});

test("A run whose programs are mostly invalid names the command that shows their errors", () => {
  const lines = [
    { samples: 32, validFraction: 0.15625 },
    { samples: 32, validFraction: 0.5 },
  ];
  assert.deepEqual(invalidLines(lines, "runs/r"), [
    "Not valid: 43 of 64 programs; longrun samples runs/r --failed shows their errors",
  ]);
  assert.deepEqual(invalidLines(lines.slice(1), "runs/r"), []);
});
