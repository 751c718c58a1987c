import assert from "node:assert/strict";
import { test } from "node:test";
import { type LostAttempt, type Termination, Terminations } from "./terminations.ts";

const T0 = Date.UTC(2030, 0, 1);
const SECOND = 1000;

const loss = (change: Partial<LostAttempt> = {}): LostAttempt => ({
  actor: "actor-0",
  slot: 1,
  attempt: { execution: "s1", number: 1, fence: "1" },
  header: {},
  leasedAtMs: T0,
  lostAtMs: T0 + 10 * SECOND,
  ...change,
});
const termination = (change: Partial<Termination> = {}): Termination => ({
  actor: "actor-0",
  slot: 1,
  reason: "OOMKilled",
  exitCode: 137,
  finishedAtMs: T0 + 9 * SECOND,
  ...change,
});

test("a loss and a termination explain each other once, in either order", () => {
  const lossFirst = new Terminations();
  assert.equal(lossFirst.lost(loss()), undefined);
  assert.deepEqual(lossFirst.reported(termination()), loss());
  assert.equal(lossFirst.reported(termination()), undefined, "a repeated report");
  assert.equal(lossFirst.lost(loss()), undefined, "used up");

  const reportFirst = new Terminations();
  assert.equal(reportFirst.reported(termination()), undefined);
  assert.equal(reportFirst.reported(termination()), undefined);
  assert.deepEqual(reportFirst.lost(loss()), termination());
  assert.equal(reportFirst.lost(loss()), undefined, "used up");
});

const strangers: [string, Partial<LostAttempt>, Partial<Termination>][] = [
  ["another actor", {}, { actor: "actor-1" }],
  ["another slot", {}, { slot: 0 }],
  ["an attempt that began after the container ended", { leasedAtMs: T0 + 20 * SECOND, lostAtMs: T0 + 30 * SECOND }, {}],
  ["a loss long after", { lostAtMs: T0 + 200 * SECOND }, {}],
  ["a termination long after", {}, { finishedAtMs: T0 + 200 * SECOND }],
];
for (const [name, changedLoss, changedTermination] of strangers) {
  test(`a loss and a termination do not match: ${name}`, () => {
    const first = new Terminations();
    first.lost(loss(changedLoss));
    assert.equal(first.reported(termination(changedTermination)), undefined);
    const second = new Terminations();
    second.reported(termination(changedTermination));
    assert.equal(second.lost(loss(changedLoss)), undefined);
  });
}

test("a loss and a termination match if the node's clock is some seconds off", () => {
  const terminations = new Terminations();
  terminations.lost(loss({ leasedAtMs: T0 + 9.9 * SECOND, lostAtMs: T0 + 10 * SECOND }));
  assert.ok(terminations.reported(termination({ finishedAtMs: T0 + 5 * SECOND })));
});

test("a termination explains the closest of several losses of its slot", () => {
  const terminations = new Terminations();
  const attempts = [10, 40, 70].map((second) =>
    loss({
      attempt: { execution: `s${second}`, number: 1, fence: String(second) },
      lostAtMs: T0 + second * SECOND,
    }),
  );
  for (const attempt of attempts) terminations.lost(attempt);
  const executions = [39, 69, 9].map(
    (second) => terminations.reported(termination({ finishedAtMs: T0 + second * SECOND }))?.attempt.execution,
  );
  assert.deepEqual(executions, ["s40", "s70", "s10"]);
});

test("the number of remembered entries is bounded", () => {
  const terminations = new Terminations({ remembered: 2 });
  for (const slot of [1, 2, 3]) terminations.lost(loss({ slot }));
  assert.equal(terminations.reported(termination({ slot: 1 })), undefined);
  assert.ok(terminations.reported(termination({ slot: 2 })));
  assert.ok(terminations.reported(termination({ slot: 3 })));
});
