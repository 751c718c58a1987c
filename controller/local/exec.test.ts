import assert from "node:assert/strict";
import { test } from "node:test";
import { type ExecResult, lastLinesOf, showResult } from "./exec.ts";

const result: ExecResult = {
  ...{ outcome: "failed", exitStatus: 1, detail: "ValueError in line 3" },
  ...{ durationSeconds: 0.25, cpuSeconds: 0.125, peakMemoryBytes: 1024, markers: ["loaded data"] },
  ...{ valid: false, score: null, reward: -9.9, clamped: true, guards: [] },
  output: "\u001b]52;c;cm0gLXJm\u0007\u009b2Jfailed\rpassed",
  reason: "failed: \u001b[2Jin\nline 3",
  lastLines: ["  raise ValueError(1)", "ValueError: \u001b[2J1"],
};
const FACTS = `outcome         failed
exitStatus      1
detail          ValueError in line 3
durationSeconds 0.25
cpuSeconds      0.125
peakMemoryBytes 1024
markers         loaded data
valid           false
score           -
reward          -9.9
clamped         true
guards          
reason          failed: ␛[2Jin line 3
last lines        raise ValueError(1)
                ValueError: ␛[2J1
`;

const CASES: [name: string, json: boolean, isTTY: boolean, shown: string][] = [
  ["a terminal gets no escape sequence of a program", false, true, `␛]52;c;cm0gLXJm␇\ufffd2Jfailed␍passed\n${FACTS}`],
  ["a pipe gets the output as it is", false, false, `${result.output}\n${FACTS}`],
  ["JSON has it as it is", true, true, `${JSON.stringify(result)}\n`],
];
for (const [name, json, isTTY, shown] of CASES)
  test(name, () => {
    let written = "";
    showResult(result, json, { isTTY, write: (text) => (written += text) });
    assert.equal(written, shown);
  });

test("the last lines are those of the error, without blank lines, cut", () => {
  const output = `loaded data\nTraceback (most recent call last):\r\n  File "program.py", line 3\n\nValueError: ${"x".repeat(900)}\n \n`;
  const lines = ["Traceback (most recent call last):", '  File "program.py", line 3', `ValueError: ${"x".repeat(288)}`];
  assert.deepEqual(lastLinesOf(output), lines);
  assert.deepEqual(lastLinesOf(""), []);
});
