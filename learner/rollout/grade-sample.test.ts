import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openTask } from "../tasks/task.ts";
import { writeTaskFolder } from "../tasks/task-folder.fixture.ts";
import { gradeSample } from "./grade-sample.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-grade-sample-"));
after(() => rmSync(folder, { recursive: true, force: true }));

test("a stored sample gets its grade and its reward", () => {
  const task = openTask(writeTaskFolder(folder));
  const constants = { failureReward: -10, markerReward: 0.1 };
  const result = {
    outcome: "completed" as const,
    exitStatus: 0,
    signal: 0,
    durationSeconds: 1,
    cpuSeconds: 1,
    peakMemoryBytes: 1,
    ...{ markers: [{ name: "loaded data", value: "", atSeconds: 0.1 }], forgedMarkers: 0, imitatedMarkers: 0 },
    ...{ terminalOutput: "", outputBytes: 0, submissionRefused: "", detail: "", isolationLevel: "none" },
    ...{ actor: "actor-0", attempt: 1, queueSeconds: 0 },
  };
  const executed = {
    state: "finished" as const,
    solution: "",
    insertedMarkers: ["imported packages", "loaded data"],
    result,
  };
  const submission = new Uint8Array(Buffer.from("xxid,y\n0,1\n1,4\n")).subarray(2);
  const of = (sample: Parameters<typeof gradeSample>[0], bytes?: Uint8Array) => {
    const { reward, reason, valid, score } = gradeSample(sample, bytes, task, constants);
    return [reward, reason, valid, score];
  };
  assert.deepEqual(of(executed, submission), [0.9, "valid", true, 1]);
  assert.deepEqual(of(executed), [-9.9, "noSubmission", false, undefined]);
  assert.deepEqual(of({ ...executed, result: { ...result, submissionRefused: "symbolic link" } }), [
    ...[-9.9, "submission refused: symbolic link", false, undefined],
  ]);
  assert.deepEqual(of({ ...executed, result: { ...result, outcome: "timedOut" } }, submission), [
    -9.9,
    "timedOut",
    false,
    undefined,
  ]);
  const notExecuted = { state: "notExecuted" as const, solution: "Just a plan.", insertedMarkers: [] };
  assert.deepEqual(of(notExecuted), [-10, "noCodeBlock", false, undefined]);
});
