import assert from "node:assert/strict";
import { test } from "node:test";
import type { Sample } from "../store/types.ts";
import { commonErrors, errorOf } from "./common-errors.ts";

const failed = (id: string, reason: string, terminalOutput?: string) =>
  ({
    ...{ id, solution: `solution ${id}`, ...(terminalOutput !== undefined && { program: `program ${id}` }) },
    grade: { valid: false, reward: -10, reason },
    ...(terminalOutput !== undefined && { result: { outcome: "failed", terminalOutput } }),
  }) as unknown as Sample;

test("a failed program's error is the last line of its output, else the reason", () => {
  assert.equal(errorOf(failed("a", "failed", "loaded data\nKeyError: 'x'\n\n")), "KeyError: 'x'");
  assert.equal(errorOf(failed("a", "failed", "")), "failed");
  assert.equal(errorOf(failed("a", "timedOut", "epoch 7\n")), "timedOut");
  assert.equal(errorOf(failed("a", "noCodeBlock")), "noCodeBlock");
  assert.equal(errorOf(failed("a", "failed", "x".repeat(1000))).length, 300);
});

test("errors that differ in names and numbers are one kind, with the newest program as example", () => {
  const errors = commonErrors([
    failed("a", "noCodeBlock"),
    failed("b", "failed", "KeyError: 'x'"),
    failed("c", "failed", "KeyError: 'y'"),
    failed("d", "failed", "ValueError: shapes (3,2) and (4,)"),
    failed("e", "failed", `KeyError: "['a'] not in index"`),
  ]);
  assert.deepEqual(errors, [
    { error: `KeyError: "['a'] not in index"`, samples: 3, example: { id: "e", program: "program e" } },
    { error: "noCodeBlock", samples: 1, example: { id: "a", program: "solution a" } },
    { error: "ValueError: shapes (3,2) and (4,)", samples: 1, example: { id: "d", program: "program d" } },
  ]);
  const many = Array.from({ length: 9 }, (_, i) => failed(`${i}`, `reason ${"abcdefghi"[i]}`));
  assert.equal(commonErrors(many).length, 5);
  assert.deepEqual(commonErrors([]), []);
});
