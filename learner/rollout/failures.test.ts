import assert from "node:assert/strict";
import { test } from "node:test";
import { newResult, newSample } from "../store/store.fixture.ts";
import type { AcceptedResult, Grade, Sample } from "../store/types.ts";
import { distinctFailures, drawFailure, failureText } from "./failures.ts";

const failed = (id: string, result: Partial<AcceptedResult>, grade: Partial<Grade> = {}): Sample => ({
  ...{ ...newSample(id), sequence: 1, attempts: 1, createdAt: 0, state: "finished" },
  result: {
    ...newResult({ outcome: "failed", exitStatus: 1, markers: [] }),
    ...{ actor: "a", attempt: 1, queueSeconds: 0, ...result },
  },
  grade: { valid: false, reward: -10, reason: result.outcome ?? "failed", ...grade },
});

test("of failures in the same way the first is kept; answers without a program are none", () => {
  const error = (text: string) => ({
    terminalOutput: `Traceback\n${text}\n`,
    detail: `${text.split(":")[0]} in line 1`,
  });
  const samples = [
    failed("a", error("KeyError: 'x'")),
    failed("b", error("KeyError: 'carat'")),
    failed("c", error("ValueError: 3 rows")),
    failed("d", error("ValueError: 19 rows")),
    failed("e", { outcome: "timedOut" }),
    {
      ...failed("f", {}),
      program: undefined,
      result: undefined,
      grade: { valid: false, reward: -10, reason: "noPlan" },
    },
    failed("g", { outcome: "completed", exitStatus: 0 }, { reason: "noSubmission" }),
    { ...failed("h", {}), grade: { valid: true, score: 1, reward: 1, reason: "valid" } },
  ] as Sample[];
  assert.deepEqual(
    distinctFailures(samples).map(({ id, step }) => [id, step]),
    [
      ["a", "failed"],
      ["c", "failed"],
      ["e", "failed"],
      ["g", "noSubmission"],
    ],
  );
});

test("a failure is named in one line that tells nothing of the answers", () => {
  const text = (result: Partial<AcceptedResult>, reason?: string) =>
    failureText(failed("a", result, reason ? { reason } : {}));
  const completed = { outcome: "completed", exitStatus: 0 } as const;
  assert.equal(text({ detail: "KeyError in line 3" }), "KeyError in line 3");
  assert.equal(text({ outcome: "timedOut", detail: "stopped after 15 s" }), "it took too long (stopped after 15 s)");
  assert.equal(text({ outcome: "outOfMemory" }), "it used more memory than allowed");
  assert.equal(text({ ...completed }, "noSubmission"), "it wrote no submission.csv");
  assert.equal(
    text({ ...completed, detail: "no submission.csv; found a.csv" }, "noSubmission"),
    "no submission.csv; found a.csv",
  );
  assert.equal(text({ ...completed }, "missing column id"), "its submission cannot be graded: missing column id");
  assert.equal(
    text({ ...completed }, "y has no word in row 3, and neither has the answer"),
    "its submission cannot be graded",
  );
});

test("the newer of two is drawn", () => {
  const failures = distinctFailures(["A", "B", "C", "D"].map((name) => failed(name, { terminalOutput: name })));
  const drawn = (...numbers: number[]) => drawFailure(failures, () => numbers.shift()!)?.id;
  assert.equal(failures.length, 4);
  assert.deepEqual([drawn(0.99, 0.99), drawn(0.99, 0.3), drawn(0.1, 0.9)], ["D", "B", "A"]);
  assert.equal(
    drawFailure([], () => 0.5),
    undefined,
  );
});
