import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Condition, TrainingRunStatus } from "../../../crds/trainingrun.ts";
import { TokenBucket } from "../kube/token-bucket.ts";
import {
  changeOf,
  STATUS_BURST,
  STATUS_REFILL_SECONDS,
  STATUS_SECONDS,
  type StatusChange,
  statusWaitSeconds,
} from "./status-writes.ts";

const condition = (type: string, reason: string, status: Condition["status"] = "True"): Condition =>
  ({ type, status, reason, message: reason, lastTransitionTime: "2026-01-01T00:00:00Z" }) as Condition;
const STATUS: TrainingRunStatus = {
  phase: "Running",
  iteration: 3,
  conditions: [condition("Ready", "Training"), condition("Progressing", "Generating")],
  executions: { queued: 4, running: 1, completed: 10, lost: 0 },
  actors: { desired: 2, replicas: 2, running: 2, idle: 1, waiting: 0 },
  display: { iteration: "3/10", actors: "2/2" },
};

const CHANGES: [what: string, change: TrainingRunStatus, expected: StatusChange][] = [
  ["nothing", {}, "none"],
  ["executions", { executions: { queued: 0, running: 2, completed: 13, lost: 1 } }, "counts"],
  ["actors that run", { actors: { ...STATUS.actors, running: 1, idle: 0, waiting: 1 } }, "counts"],
  ["the display of actors", { display: { iteration: "3/10", actors: "1/2" } }, "counts"],
  ["a finished iteration", { iteration: 4, percent: 40, display: { iteration: "4/10", actors: "2/2" } }, "progress"],
  ["what the engine did in it", { iteration: 4, engineSeconds: { generating: 30, idleActors: 5 } }, "progress"],
  [
    "what the learner does",
    { conditions: [condition("Ready", "Training"), condition("Progressing", "Executing")] },
    "progress",
  ],
  [
    "no progress",
    { conditions: [condition("Ready", "Training"), condition("Progressing", "NoResults", "False")] },
    "state",
  ],
  ["a reason", { conditions: [condition("Ready", "Starting"), condition("Progressing", "Generating")] }, "state"],
  ["desired actors", { actors: { ...STATUS.actors, desired: 3 } }, "state"],
  ["actors that there are, for /scale", { actors: { ...STATUS.actors, replicas: 3 } }, "state"],
  ["a checkpoint", { checkpoint: { iteration: 3, digest: "d", path: "p" } }, "state"],
  ["an evaluation", { phase: "Evaluating" }, "state"],
  ["a suspension", { phase: "Suspended" }, "end"],
  ["the end", { phase: "Failed" }, "end"],
];
describe("The kind of a change of the status", () => {
  for (const [what, change, expected] of CHANGES)
    test(`${what}: ${expected}`, () => assert.equal(changeOf(STATUS, { ...STATUS, ...change }), expected));

  test("After the end of the run the status changes like any other state", () =>
    assert.equal(
      changeOf({ ...STATUS, phase: "Failed" }, { ...STATUS, phase: "Failed", percent: 1, startTime: "x" }),
      "state",
    ));
});

const WAITS: [
  change: Exclude<StatusChange, "none">,
  facts: Partial<Parameters<typeof statusWaitSeconds>[1]>,
  seconds: number,
][] = [
  ["counts", { sinceSeconds: 3 }, STATUS_SECONDS - 3],
  ["counts", { sinceSeconds: 3600 }, 0],
  ["counts", { sinceSeconds: 3600, hasSpare: false }, 5],
  ["progress", { sinceSeconds: 0.1 }, 0],
  ["progress", { hasSpare: false }, 5],
  ["progress", { ownSeconds: 1.5 }, 1.5],
  ["state", { sinceSeconds: 0.1, hasSpare: false }, 0],
  ["state", { ownSeconds: 1.5, hasSpare: false }, 1.5],
  ["end", { ownSeconds: 1.5, hasSpare: false, sinceSeconds: 0 }, 0],
];
for (const [change, facts, seconds] of WAITS)
  test(`${change} with ${JSON.stringify(facts)} waits ${seconds} s`, () =>
    assert.equal(statusWaitSeconds(change, { sinceSeconds: 0, ownSeconds: 0, hasSpare: true, ...facts }), seconds));

test("A run has its burst of writes, then one every two seconds", () => {
  let nowMs = 0;
  const tokens = new TokenBucket(1 / STATUS_REFILL_SECONDS, STATUS_BURST, () => nowMs);
  let writes = 0;
  for (; nowMs <= 20_000; nowMs += 5)
    if (tokens.secondsUntilNext() === 0) {
      tokens.reserveSeconds();
      writes += 1;
    }
  const most = STATUS_BURST + 20 / STATUS_REFILL_SECONDS;
  assert.ok(writes === most || writes === most - 1, `${writes} of ${most}`);
  assert.ok(tokens.level < 0.2);
});
