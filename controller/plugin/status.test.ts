import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { at, NOW_MS, runOf } from "../operator/run.fixture.ts";
import { statusLines } from "./status.ts";
import { span } from "./text.ts";

const condition = (type: string, status: string, reason: string, message: string) => ({
  type,
  status,
  reason,
  message,
});

describe("status for people", () => {
  const lines = (status: object, spec: object = {}) => statusLines(runOf(spec, status), NOW_MS);

  test("It shows a run that goes on", () => {
    const status = {
      ...{ phase: "Running", iteration: 4, percent: 33, score: { best: 320.712, mean: 702.61, validFraction: 0.875 } },
      executions: { queued: 3, running: 2, completed: 60, lost: 1, disrupted: 2 },
      meanDurationSeconds: 0.4567,
      engineSeconds: { generating: 30, updating: 20, idleActors: 40, idlePrograms: 10 },
      actors: { desired: 3, running: 2, idle: 1, waiting: 1, waitingReason: "no node takes the pod" },
      checkpoint: { iteration: 4, digest: "d", path: "checkpoints/1-000004" },
      runtime: { name: "one-gpu" },
      results: { iteration: 3, url: "s3://results/a", message: "results could not be copied" },
      evaluation: { before: { best: 371.9, mean: 800, validFraction: 0.6 } },
      ...{ startTime: at(-3725), estimatedCompletion: at(90) },
      conditions: [
        condition("Succeeded", "Unknown", "InProgress", "the run is not over"),
        condition("Progressing", "True", "Executing", "iteration 5 of 12: programs run"),
      ],
    };
    assert.deepEqual(lines(status, { stopping: { iterations: 12 } }), [
      "quick       Running · iteration 4 of 12 · 33%",
      "runtime     one-gpu",
      "scores      best 320.7 · mean 702.6 · 88% valid",
      "evaluated   before: best 371.9, mean 800, 60% valid",
      "programs    2 run · 3 wait · 60 done · 1 lost · 2 disrupted · 0.4567 s each",
      "actors      2 of 3 run · 1 idle · 1 wait: no node takes the pod",
      "engine      30% generating, 20% updating, 50% idle (executions waited for an actor: raise actors.max or actors.slots)",
      "checkpoint  iteration 4 · checkpoints/1-000004",
      "results     iteration 3 · s3://results/a · results could not be copied",
      "time        since 1 h 2 min · about 1 min 30 s left",
      "now         iteration 5 of 12: programs run",
    ]);
  });

  test("It shows each of several tasks, and the whole", () => {
    const status = {
      ...{ phase: "Running", iteration: 4, score: { meanNormalized: 0.25, validFraction: 0.5 } },
      tasks: [
        { name: "diamonds", best: 320.712, mean: 702.61, validFraction: 0.875 },
        {
          name: "wage",
          best: 36,
          validFraction: 0.25,
          evaluation: { before: { best: 40, mean: 50, validFraction: 0.5 } },
        },
      ],
    };
    const spec = { tasks: [{ name: "diamonds" }, { name: "wage" }], stopping: { iterations: 12 } };
    assert.deepEqual(lines(status, spec).slice(1), [
      "scores      50% valid · mean 0.25 from 0 to 1",
      "diamonds    best 320.7 · mean 702.6 · 88% valid",
      "wage        best 36 · 25% valid · before: best 40, mean 50, 50% valid",
    ]);
  });

  test("It shows a run without news", () => {
    assert.deepEqual(lines({}), ["quick       not seen by a controller yet · iteration 0 of 100"]);
  });

  test("It shows each blocker once", () => {
    const text = "no node has enough memory";
    const conditions = [
      condition("Ready", "False", "Unschedulable", text),
      condition("LearnerAvailable", "False", "Unschedulable", text),
      condition("ActorsScaled", "False", "QuotaExceeded", "pods: 3 of 3"),
      condition("Progressing", "False", "LearnerStarting", "the learner starts"),
    ];
    assert.deepEqual(lines({ phase: "Pending", conditions }).slice(1), [
      `blocked     Unschedulable: ${text}`,
      "blocked     QuotaExceeded: pods: 3 of 3",
    ]);
  });

  const ENDS: [string, object, object, string][] = [
    ["it has succeeded", {}, condition("Succeeded", "True", "Completed", "all done"), "ended       all done"],
    [
      "it has failed",
      {},
      condition("Succeeded", "False", "RunFailed", "the disk is full"),
      "ended       the disk is full",
    ],
    ["it is paused", { suspend: true }, condition("Suspended", "True", "Suspended", "stopped"), "paused      stopped"],
  ];
  for (const [what, spec, found, line] of ENDS)
    test(what, () => {
      const going = condition("Progressing", "False", "Finished", "the run is over");
      assert.equal(lines({ conditions: [found, going] }, spec).at(-1), line);
    });

  test("A learner's text cannot control the terminal", () => {
    const message = "\u001b[2Jfailed\r\n\u0007in line 3\u009b31m";
    const line = lines({ conditions: [condition("Succeeded", "False", "RunFailed", message)] }).at(-1)!;
    assert.equal(line, "ended       ␛[2Jfailed ␇in line 3�31m");
  });

  test("It shows spans of time", () => {
    assert.deepEqual([59.6, 61, 7300, 90_000].map(span), ["1 min 0 s", "1 min 1 s", "2 h 1 min", "1 d 1 h"]);
  });
});
