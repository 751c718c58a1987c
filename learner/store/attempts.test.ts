/** Tests leases and attempts: who may hand in a result, the effects of a loss, and revocation. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newResult, newSample } from "./store.fixture.ts";
import type { Store } from "./store.ts";
import { finishAll, newStore, taken } from "./store-tests.fixture.ts";
import type { AttemptKey } from "./types.ts";

test("each attempt has its own number, fence and nonce; the program contains the nonce", async () => {
  const { store } = await newStore({ maxAttempts: 9 });
  store.addSamples([newSample("a")]);
  const first = taken(store);
  assert.equal(store.leases.takeAll(["actor-1"])[0], undefined);
  assert.match(first.nonce, /^[0-9a-f]{32}$/);
  assert.equal(first.program, `print("${first.nonce}:loaded data")\nprint(1)\n`);
  store.leases.fail("actor-0", first, "broken");
  const second = taken(store);
  assert.equal(second.number, 2);
  assert.ok(Number(second.fence) > Number(first.fence));
  assert.notEqual(second.nonce, first.nonce);
});

test("the nonce does not replace a placeholder that the policy wrote", async () => {
  const { store } = await newStore();
  const program = 'print("@@NONCE@@:trained model")\n';
  store.addSamples([newSample("a", { program, instrumented: `print("@@NONCE@@:loaded data")\n${program}` })]);
  const lease = taken(store);
  assert.ok(!lease.program.includes(lease.nonce));
});

interface Case {
  name: string;
  /** Events of the first attempt, which actor-0 leased. */
  before: (store: Store, lease: AttemptKey, clock: { seconds: number }) => void;
  actor?: string;
  change?: Partial<AttemptKey>;
  verdict: string;
}
const expire = (store: Store, _: AttemptKey, clock: { seconds: number }) => {
  clock.seconds += 11;
  assert.equal(store.leases.expire(), 1);
};
const cases: Case[] = [
  { name: "the first one", before: () => {}, verdict: "accepted" },
  {
    name: "a repeat",
    before: (store, lease) => store.leases.accept("actor-0", lease, newResult()),
    verdict: "duplicate",
  },
  { name: "another actor's", before: () => {}, actor: "actor-1", verdict: "unknown" },
  { name: "an execution that does not exist", before: () => {}, change: { execution: "b" }, verdict: "unknown" },
  { name: "a number that does not exist", before: () => {}, change: { number: 2 }, verdict: "unknown" },
  { name: "a fence that does not exist", before: () => {}, change: { fence: "99" }, verdict: "unknown" },
  { name: "a fence that is no number", before: () => {}, change: { fence: "1; DROP TABLE" }, verdict: "unknown" },
  { name: "after its lease expired, nobody else having it", before: expire, verdict: "accepted" },
  {
    name: "after its lease expired and another attempt began",
    before: (...all) => {
      expire(...all);
      taken(all[0], "actor-1");
    },
    verdict: "revoked",
  },
  {
    name: "after another attempt's result",
    before: (...all) => {
      expire(...all);
      finishAll(all[0], { actor: "actor-1" });
    },
    verdict: "duplicate",
  },
  { name: "after it was discarded", before: (store) => store.discardUnfinished("enough"), verdict: "revoked" },
  {
    name: "after its actor gave it up",
    before: (store, lease) => store.leases.fail("actor-0", lease, "gone"),
    verdict: "revoked",
  },
  {
    name: "after the execution was lost",
    before: (...all) => {
      expire(...all);
      taken(all[0], "actor-1");
      expire(...all);
      assert.equal(all[0].counts().lost, 1);
    },
    verdict: "revoked",
  },
];
for (const { name, before, actor = "actor-0", change = {}, verdict } of cases) {
  test(`a result is ${verdict}: ${name}`, async () => {
    const { store, clock } = await newStore();
    store.addSamples([newSample("a")]);
    const lease = taken(store);
    before(store, lease, clock);
    const counts = store.counts();
    assert.equal(store.leases.attempts.judge(actor, { ...lease, ...change }), verdict);
    assert.equal(store.leases.accept(actor, { ...lease, ...change }, newResult({ detail: "late" })), verdict);
    if (verdict === "accepted") assert.equal(store.counts().completed, 1);
    else assert.deepEqual(store.counts(), counts);
  });
}

test("a lost attempt is repeated before later executions, up to maxAttempts; then the execution is lost", async () => {
  const { store } = await newStore({ maxAttempts: 3 });
  const heard: unknown[] = [];
  store.events.on("attemptLost", (attempt, reason, state) => heard.push([attempt.number, reason, state]));
  store.addSamples([newSample("a"), newSample("b")]);
  for (const number of [1, 2, 3]) {
    const lease = taken(store);
    assert.deepEqual([lease.execution, lease.number], ["a", number]);
    store.leases.fail("actor-0", lease, "node gone");
  }
  assert.deepEqual(heard, [
    [1, "node gone", "queued"],
    [2, "node gone", "queued"],
    [3, "node gone", "lost"],
  ]);
  assert.equal(taken(store).execution, "b");
  const { queued, running, lost, retried, completedUnconsumed } = store.counts();
  assert.deepEqual(
    { queued, running, lost, retried, completedUnconsumed },
    {
      queued: 0,
      running: 1,
      lost: 1,
      retried: 2,
      completedUnconsumed: 0,
    },
  );
});

test("heartbeats extend only the leases that they name", async () => {
  const { store, clock } = await newStore();
  store.addSamples([newSample("a"), newSample("b")]);
  const [a, b] = [taken(store), taken(store)];
  clock.seconds += 8;
  assert.deepEqual(store.leases.extend("actor-0", [a]), []);
  // Another actor cannot.
  assert.deepEqual(store.leases.extend("actor-1", [b]).length, 1);
  clock.seconds += 8;
  assert.equal(store.leases.expire(), 1);
  assert.deepEqual(
    store.leases.running().map(({ execution }) => execution),
    ["a"],
  );
  // b's actor was only late: it has b again.
  assert.deepEqual(store.leases.extend("actor-0", [b]), []);
  assert.equal(store.counts().running, 2);
  assert.equal(store.leases.running().length, 2);
  assert.equal(store.leases.accept("actor-0", b, newResult()), "accepted");
});

test("a reconnected actor keeps the attempts that it names; its other attempts are queued again at once", async () => {
  const { store } = await newStore();
  store.addSamples(["a", "b", "c"].map((id) => newSample(id)));
  const [a, b, c] = [taken(store), taken(store), taken(store)];
  store.leases.accept("actor-0", c, newResult());
  const unknown = { execution: "z", number: 1, fence: "77" };
  // c's acknowledgement did not arrive: it is not revoked, its repeat will be acknowledged.
  assert.deepEqual(store.leases.reconcile("actor-0", [a, c, unknown]), [unknown]);
  assert.equal(store.counts().queued, 1);
  const again = taken(store, "actor-1");
  assert.deepEqual([again.execution, again.number], ["b", 2]);
  assert.deepEqual(store.leases.reconcile("actor-0", [a, b]), [
    { execution: b.execution, number: b.number, fence: b.fence },
  ]);
});

test("heartbeats cannot extend a lease past longestSeconds; then the attempt is lost and revoked", async () => {
  const { store, clock } = await newStore({ longestSeconds: 25 });
  store.addSamples([newSample("a")]);
  const told: unknown[] = [];
  store.events.on("attemptLost", (_, reason) => told.push(reason));
  store.events.on("revoked", (attempts) => told.push(attempts.map(({ execution }) => execution)));
  const first = taken(store);
  for (const _ of [1, 2, 3]) {
    clock.seconds += 8;
    assert.deepEqual(store.leases.extend("actor-0", [first]), []);
    assert.equal(store.leases.expire(), 0);
  }
  clock.seconds += 1;
  assert.equal(store.leases.expire(), 1);
  assert.match(String(told[0]), /no result within 25 s .*leaseSlackSeconds/);
  assert.deepEqual(told.slice(1), [["a"]]);
  assert.deepEqual(store.leases.extend("actor-0", [first]).length, 1, "a heartbeat does not bring it back");
  assert.equal(store.counts().queued, 1);
  // The result of an expired attempt counts as long as nobody else has leased the execution.
  assert.deepEqual(store.leases.reconcile("actor-0", [first]), []);
  assert.equal(store.leases.accept("actor-0", first, newResult()), "accepted");
});

test("attempts have the grace period after a learner's absence that was longer than the leases", async () => {
  const { store, clock, path } = await newStore({ longestSeconds: 25 });
  store.addSamples([newSample("a")]);
  const a = taken(store);
  store.close();
  clock.seconds += 1000;
  const { store: again } = await newStore({ longestSeconds: 25, now: () => clock.seconds * 1000 }, path);
  again.leases.startGrace();
  assert.equal(again.leases.expire(), 0);
  clock.seconds += 4;
  assert.deepEqual(again.leases.reconcile("actor-0", [a]), []);
  assert.equal(again.leases.longestDuration(a), 25);
  clock.seconds += 1;
  assert.equal(again.leases.expire(), 1, "leaseGraceSeconds are over");
});

test("an actor cannot report more seconds than have passed since its lease", async () => {
  const { store, clock } = await newStore();
  store.addSamples([newSample("a")]);
  const a = taken(store);
  clock.seconds += 5;
  store.leases.extend("actor-0", [{ ...a, elapsedSeconds: 1e6 }]);
  store.discardUnfinished("batch complete");
  assert.deepEqual(store.abandonedSeconds(0), [5]);
});

test("discardUnfinished revokes running attempts and keeps finished samples", async () => {
  const { store, clock } = await newStore();
  const revoked: unknown[] = [];
  store.events.on("revoked", (attempts, reason) => revoked.push(...attempts.map(({ execution }) => execution), reason));
  store.addSamples(["a", "b", "c"].map((id) => newSample(id)));
  store.addSamples([newSample("e", { purpose: "evaluation" })]);
  store.leases.accept("actor-0", taken(store), newResult());
  const b = taken(store);
  clock.seconds += 5;
  store.leases.extend("actor-0", [{ ...b, elapsedSeconds: 4.5 }]);
  assert.equal(store.discardUnfinished("batch complete"), 2);
  assert.deepEqual(revoked, ["b", "batch complete"]);
  const { queued, running, completed, discarded } = store.counts();
  assert.deepEqual({ queued, running, completed, discarded }, { queued: 0, running: 0, completed: 1, discarded: 2 });
  assert.deepEqual(store.abandonedSeconds(0), [4.5]);
  assert.equal(taken(store).execution, "e");
});

test("discardOtherTasks discards unfinished samples of removed tasks and keeps their results", async () => {
  const { store } = await newStore();
  const revoked: string[] = [];
  store.events.on("revoked", (attempts) => revoked.push(...attempts.map(({ execution }) => execution)));
  const wage = (id: string, change = {}) => newSample(id, { task: "wage", ...change });
  store.addSamples([
    wage("trained"),
    wage("done"),
    wage("evaluated", { purpose: "evaluation-before" }),
    wage("ungraded", { purpose: "evaluation-before" }),
    newSample("a"),
  ]);
  finishAll(store, { submission: "x" });
  for (const id of ["trained", "done", "evaluated"])
    store.setGrade(id, { valid: true, score: 2, reward: 1, reason: "valid" });
  store.addPreviousSolution({ id: "trained", iteration: 1 });
  store.commitIteration({ iteration: 1, sampleIds: ["trained"], metrics: {} });
  store.addSamples([wage("running"), wage("waits")]);
  taken(store);
  assert.deepEqual([...store.taskNames()].sort(), ["diamonds", "wage"]);
  assert.equal(store.discardOtherTasks(["diamonds"]), 4);
  assert.deepEqual(revoked, ["running"]);
  const states = ["trained", "done", "evaluated", "ungraded", "a", "running", "waits"].map(
    (id) => store.sample(id)!.state,
  );
  const [kept, gone] = ["finished", "discarded"];
  assert.deepEqual(states, [kept, gone, kept, gone, kept, gone, gone]);
  assert.deepEqual(
    store.ungraded().map(({ id }) => id),
    ["a"],
    "the run has no grader for the others",
  );
  assert.deepEqual(
    store.nextBatch(9).map(({ id }) => id),
    ["a"],
  );
  assert.equal(store.previousSolutions("wage", 9).length, 1);
  assert.equal(store.bestSample("wage", "Lower")!.id, "trained");
  assert.equal(store.discardOtherTasks(["diamonds"]), 0);
});
