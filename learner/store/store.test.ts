import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { deflateSync } from "node:zlib";
import { newResult, newSample, scratchFolder } from "./store.fixture.ts";
import { openStore, type Store, type StoreOptions } from "./store.ts";
import type { AttemptKey, CheckpointRow } from "./types.ts";

const folder = scratchFolder();
let files = 0;
const newPath = () => join(folder, `${files++}.sqlite`);
const fails = (code: string, pattern = /./) => ({ name: "StoreError", code, message: pattern });

/** A store with a clock that stands until it is moved. */
async function newStore(options: StoreOptions = {}, path = newPath()) {
  const clock = { seconds: 1000 };
  const store = openStore(path, {
    leaseSeconds: 10,
    leaseGraceSeconds: 5,
    maxAttempts: 2,
    now: () => clock.seconds * 1000,
    ...options,
  });
  await store.beginLineage(() => true);
  return { store, clock, path };
}

/** Leases and finishes whatever is queued. */
function finishAll(store: Store, actor = "actor-0"): void {
  for (let lease = store.leases.takeAll([actor])[0]; lease; lease = store.leases.takeAll([actor])[0])
    assert.equal(store.leases.accept(actor, lease, newResult()), "accepted");
}

function taken(store: Store, actor = "actor-0") {
  const lease = store.leases.takeAll([actor])[0];
  assert.ok(lease);
  return lease;
}

describe("samples", () => {
  test("come back as they were stored", async () => {
    const { store } = await newStore();
    const sample = newSample("a", {
      kind: "improve",
      previous: "before",
      group: "first",
      truncated: true,
      behaviourLogProbs: Float32Array.of(-0, -1e-30, Number.NEGATIVE_INFINITY),
      responseTokens: Int32Array.of(-1, 2 ** 31 - 1, 0),
      solution: "Ünïcode \u0000 and NUL",
    });
    // Views into a larger buffer, not aligned to its start.
    sample.promptTokens = new Int32Array(new Int32Array([9, 8, 7, 6]).buffer, 4, 2);
    store.addSamples([sample]);
    const [stored] = store.samples(["a"]);
    const { state, ...written } = sample;
    assert.deepEqual(
      { ...stored, state: "queued" },
      {
        ...written,
        state,
        sequence: 1,
        attempts: 0,
        createdAt: 1000_000,
        finishedAt: undefined,
        grade: undefined,
        result: undefined,
        usedIteration: undefined,
      },
    );
  });

  test("the order of dispatch can be given: it leaves gaps, is leased in its order, and goes on after the last", async () => {
    const { store } = await newStore();
    assert.equal(store.nextSequence(), 1);
    store.addSamples([newSample("c", { sequence: 7 })]);
    store.addSamples([newSample("b", { sequence: 4 }), newSample("d")]);
    assert.equal(store.nextSequence(), 9);
    assert.deepEqual(
      store.leases.takeAll(["actor-0", "actor-0", "actor-0"]).map(({ execution }) => execution),
      ["b", "c", "d"],
    );
    assert.throws(() => store.addSamples([newSample("e", { sequence: 7 })]), { code: "conflict" });
  });

  test("results, submissions and grades come back, too", async () => {
    const { store, clock } = await newStore();
    store.addSamples([newSample("a")]);
    clock.seconds += 3;
    const lease = taken(store);
    const text = Buffer.from("id,price\n1,2.5\n");
    const result = newResult({
      submissionBytes: text.length,
      submissionSha256: "ab",
      terminalOutput: "a\u0000b\ufffd",
    });
    assert.equal(store.leases.accept("actor-0", lease, result, deflateSync(text)), "accepted");
    const grade = {
      ...{ valid: true, score: 0.5, reward: 0.5, reason: "valid", family: "ridge" },
      ...{ guards: ["sampleSubmission", "constant"], clamped: false, capped: true },
    };
    store.setGrade("a", grade);
    const [sample] = store.samples(["a"]);
    assert.deepEqual(sample.result, { ...result, actor: "actor-0", attempt: 1, queueSeconds: 3 });
    assert.deepEqual(sample.grade, grade);
    assert.deepEqual(store.submission("a"), text);
    store.setGrade("a", { valid: false, reward: -10, reason: "again" });
    assert.deepEqual(store.samples(["a"])[0].grade, {
      valid: false,
      score: undefined,
      reward: -10,
      reason: "again",
      family: undefined,
      ...{ guards: [], clamped: false, capped: false },
    });
  });

  const refused: [string, Parameters<typeof newSample>[1], RegExp][] = [
    ["an id that was used", { id: "a" }, /UNIQUE/],
    ["log-probs of another length", { behaviourLogProbs: new Float32Array(2) }, /differ in length/],
    ["nothing to run", { instrumented: undefined }, /without an instrumented program/],
    ["a kind that does not exist", { kind: "other" as "scratch" }, /CHECK/],
  ];
  for (const [name, change, message] of refused) {
    test(`refused: ${name}; nothing of the call is stored`, async () => {
      const { store } = await newStore();
      store.addSamples([newSample("a")]);
      assert.throws(() => store.addSamples([newSample("b"), newSample("c", change)]), fails("conflict", message));
      assert.equal(store.counts().queued, 1);
    });
  }

  test("a batch is what was dispatched first of what can train, purposes apart", async () => {
    const { store } = await newStore();
    store.addSamples([
      newSample("a"),
      newSample("b", { state: "notExecuted", instrumented: undefined, iteration: 1 }),
      newSample("e", { purpose: "evaluation-before" }),
      newSample("c", { iteration: 2 }),
      newSample("d"),
    ]);
    const [a, e, c] = [taken(store), taken(store), taken(store)];
    assert.deepEqual([a.execution, e.execution, c.execution], ["a", "e", "c"]);
    for (const lease of [c, e]) store.leases.accept("actor-0", lease, newResult());
    const ids = (n: number, which = {}) => store.nextBatch(n, which).map(({ id }) => id);
    assert.deepEqual(ids(9), ["b", "c"]);
    store.leases.accept("actor-0", a, newResult());
    assert.deepEqual(ids(9), ["a", "b", "c"]);
    assert.deepEqual(ids(2), ["a", "b"]);
    assert.deepEqual(ids(9, { since: 1 }), ["b", "c"]);
    assert.deepEqual(ids(9, { until: 1 }), ["a", "b"]);
    assert.deepEqual(ids(9, { purpose: "evaluation-before" }), ["e"]);
    assert.equal(store.takeable({ since: 1 }), 2);
    assert.equal(store.unfinished(), 1);
    assert.deepEqual(store.counts(), {
      queued: 1,
      running: 0,
      completedUnconsumed: 3,
      completed: 3,
      consumed: 0,
      dropped: 0,
      lost: 0,
      discarded: 0,
      retried: 0,
    });
    assert.equal(store.totals().completed, 4);
    assert.deepEqual(
      store.ungraded().map(({ id }) => id),
      ["a", "b", "e", "c"],
    );
  });

  test("groups are counted by what can still be trained on, and drawn whole", async () => {
    const { store } = await newStore();
    const group = "a";
    store.addSamples([
      ...["a", "b", "c"].map((id) => newSample(id, { group, iteration: 1 })),
      newSample("d", { state: "notExecuted", instrumented: undefined }),
      newSample("e", { purpose: "evaluation-before" }),
    ]);
    const [a, b] = [taken(store), taken(store)];
    store.leases.accept("actor-0", b, newResult());
    const open = (which = {}) =>
      store.openGroups(which).map(({ id, unfinished, finished }) => [id, unfinished, finished]);
    assert.deepEqual(open(), [["a", 2, 1], ["d", 0, 1]]); // biome-ignore format: a row a group
    assert.deepEqual(open({ since: 1 }), [["a", 2, 1]]);
    const ids = (...groups: string[]) => store.groupSamples(groups).map(({ id }) => id);
    store.leases.accept("actor-0", a, newResult());
    assert.deepEqual([ids("d", "a"), ids("a"), ids("b")], [["a", "b", "d"], ["a", "b"], []]);
    store.commitIteration({ iteration: 1, sampleIds: ["a", "b"], metrics: {} });
    assert.deepEqual(open(), [["a", 1, 0], ["d", 0, 1]]); // biome-ignore format: a row a group
    assert.deepEqual(ids("a"), []);
  });

  test("previous solutions are the newest valid ones, newest first, each once", async () => {
    const { store } = await newStore();
    store.addSamples(["a", "b", "c"].map((id) => newSample(id)));
    store.addSamples([newSample("other", { task: "wage" })]);
    finishAll(store);
    for (const id of ["a", "b", "c", "other"]) {
      store.setGrade(id, { valid: true, score: 1, reward: 1, reason: "valid" });
      store.addPreviousSolution({ id, iteration: 1 });
    }
    store.addPreviousSolution({ id: "a", iteration: 1 });
    const ids = (limit: number) => store.previousSolutions("diamonds", limit).map(({ id }) => id);
    assert.deepEqual(ids(2), ["c", "b"]);
    assert.deepEqual(ids(64), ["c", "b", "a"]);
    assert.deepEqual(store.previousSolutions("wage", 1), [
      {
        id: "other",
        task: "wage",
        plan: "A plan.",
        program: "print(1)\n",
        terminalOutput: "done\n",
        score: 1,
        durationSeconds: 1.5,
      },
    ]);
  });

  test("the best sample follows the direction of the metric; the first of equals", async () => {
    const { store } = await newStore();
    store.addSamples(["a", "b", "c", "d"].map((id) => newSample(id)));
    finishAll(store);
    const grades = { a: 2, b: 1, c: 2, d: 1 };
    for (const [id, score] of Object.entries(grades))
      store.setGrade(id, { valid: true, score, reward: score, reason: "valid" });
    store.setGrade("d", { valid: false, reward: -10, reason: "failed" });
    assert.equal(store.bestSample("diamonds", "Higher")?.id, "a");
    assert.equal(store.bestSample("diamonds", "Lower")?.id, "b");
    assert.equal(store.bestSample("wage", "Lower"), undefined);
  });
});

describe("attempts", () => {
  test("each has a number, a fence and a nonce of its own; the program carries the nonce", async () => {
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

  test("a policy that writes the placeholder is not handed the nonce", async () => {
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
        finishAll(all[0], "actor-1");
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

  test("a lost attempt is tried again up to maxAttempts, before what was dispatched later, then the execution is lost", async () => {
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

  test("heartbeats extend exactly the leases that they name", async () => {
    const { store, clock } = await newStore();
    store.addSamples([newSample("a"), newSample("b")]);
    const [a, b] = [taken(store), taken(store)];
    clock.seconds += 8;
    assert.deepEqual(store.leases.extend("actor-0", [a]), []);
    // Somebody else cannot.
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

  test("what an actor holds runs on when it connects again; what it lost is queued at once", async () => {
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

  test("heartbeats extend a lease no further than its end: then it is lost, and its actor told", async () => {
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

  test("a learner that was away for longer than leases last gives them the grace period", async () => {
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

  test("discarding revokes what runs and leaves what finished", async () => {
    const { store, clock } = await newStore();
    const revoked: unknown[] = [];
    store.events.on("revoked", (attempts, reason) =>
      revoked.push(...attempts.map(({ execution }) => execution), reason),
    );
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
    assert.deepEqual(store.observedDurations(), [
      { id: "a", seconds: 1.5, completed: true },
      { id: "b", seconds: 4.5, completed: false },
    ]);
    assert.equal(taken(store).execution, "e");
  });

  test("a task that was removed: what is left of it is discarded, what is known of it stays", async () => {
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
    finishAll(store);
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
});

describe("iterations and checkpoints", () => {
  /** Four finished samples a to d; iterations 1 (a), 2 (b) and 3 (c) trained, 1 and 2 saved. */
  async function trained() {
    const made = await newStore();
    const { store } = made;
    store.commitCheckpoint({ iteration: 0, digest: "d0", path: "c0" });
    store.addSamples(["a", "b", "c", "d"].map((id) => newSample(id)));
    finishAll(store);
    store.commitIteration({ iteration: 1, sampleIds: ["a"], metrics: { loss: 1 } });
    store.commitCheckpoint({ iteration: 1, digest: "d1", path: "c1" });
    store.commitIteration({ iteration: 2, sampleIds: ["b"], metrics: { loss: 2 } });
    store.commitCheckpoint({ iteration: 2, digest: "d2", path: "c2" });
    store.commitIteration({ iteration: 3, sampleIds: ["c"], droppedIds: ["d"], metrics: { loss: 3 } });
    return made;
  }
  const paths = (store: Store) => store.checkpoints().map(({ path }) => path);
  const unused = (store: Store) => store.nextBatch(9).map(({ id }) => id);

  test("what was trained is not offered again and can be read in the order of its batch", async () => {
    const { store } = await newStore();
    store.addSamples(["a", "b", "c"].map((id) => newSample(id)));
    finishAll(store);
    store.commitIteration({ iteration: 1, sampleIds: ["c", "a"], metrics: { reward: 1 } });
    assert.deepEqual(unused(store), ["b"]);
    assert.deepEqual(
      store.samplesOf(1).map(({ id }) => id),
      ["c", "a"],
    );
    assert.deepEqual(store.iterationRows(), [
      { iteration: 1, lineage: 1, metrics: { reward: 1 }, committedAt: 1000_000 },
    ]);
  });

  const refused: [string, (store: Store) => void, RegExp][] = [
    [
      "a sample that was trained on",
      (s) => s.commitIteration({ iteration: 4, sampleIds: ["a"], metrics: {} }),
      /a cannot be/,
    ],
    ["a sample twice", (s) => s.commitIteration({ iteration: 4, sampleIds: ["e", "e"], metrics: {} }), /e cannot be/],
    [
      "a sample that was dropped",
      (s) => s.commitIteration({ iteration: 4, sampleIds: ["d"], metrics: {} }),
      /d cannot be/,
    ],
    [
      "a sample that is not finished",
      (s) => s.commitIteration({ iteration: 4, sampleIds: ["f"], metrics: {} }),
      /f cannot be/,
    ],
    [
      "an iteration that was",
      (s) => s.commitIteration({ iteration: 3, sampleIds: ["e"], metrics: {} }),
      /the last one was 3/,
    ],
    [
      "an iteration too far",
      (s) => s.commitIteration({ iteration: 5, sampleIds: ["e"], metrics: {} }),
      /the last one was 3/,
    ],
    [
      "a checkpoint of other weights",
      (s) => s.commitCheckpoint({ iteration: 2, digest: "", path: "" }),
      /weights are at 3/,
    ],
  ];
  for (const [name, commit, message] of refused) {
    test(`refused: ${name}; nothing of the call is stored`, async () => {
      const { store } = await trained();
      store.addSamples([newSample("e")]);
      finishAll(store);
      store.addSamples([newSample("f")]);
      assert.throws(() => commit(store), fails("conflict", message));
      assert.deepEqual(unused(store), ["e"]);
      assert.equal(store.iterationRows().length, 3);
    });
  }

  const restarts: { valid: string[]; iteration: number; from?: string; unused: string[]; loss: number[] }[] = [
    { valid: ["c0", "c1", "c2"], iteration: 2, from: "c2", unused: ["c", "d"], loss: [1, 2] },
    { valid: ["c0", "c1"], iteration: 1, from: "c1", unused: ["b", "c", "d"], loss: [1] },
    { valid: ["c0"], iteration: 0, from: "c0", unused: ["a", "b", "c", "d"], loss: [] },
    { valid: [], iteration: 0, unused: ["a", "b", "c", "d"], loss: [] },
  ];
  for (const { valid, iteration, from, unused: free, loss } of restarts) {
    test(`a restart with valid checkpoints [${valid}] goes on after iteration ${iteration} of them`, async () => {
      const { store, path } = await trained();
      for (const id of ["a", "b", "c"]) {
        store.setGrade(id, { valid: true, score: 1, reward: 1, reason: "valid" });
        store.addPreviousSolution({ id, iteration: id.charCodeAt(0) - 96 });
      }
      store.close();
      const again = openStore(path);
      const asked: string[] = [];
      const lineage = await again.beginLineage((row: CheckpointRow) => {
        asked.push(row.path);
        return valid.includes(row.path);
      });
      assert.deepEqual(asked, ["c2", "c1", "c0"].slice(0, from ? 3 - Number(from[1]) : 3));
      assert.equal(lineage.lineage, 2);
      assert.equal(lineage.iteration, iteration);
      assert.equal(lineage.checkpoint?.path, from);
      assert.equal(lineage.unconsumed, free.length);
      assert.deepEqual(unused(again), free);
      assert.deepEqual(
        again.iterationRows().map(({ metrics }) => metrics.loss),
        loss,
      );
      assert.deepEqual(paths(again), ["c2", "c1", "c0"].slice(from ? 2 - Number(from[1]) : 3));
      assert.equal(again.previousSolutions("diamonds", 9).length, iteration);
      // The iteration that was undone is done again, by other weights, from the same results.
      again.commitIteration({ iteration: iteration + 1, sampleIds: [free[0]], metrics: { loss: -1 } });
      again.commitCheckpoint({ iteration: iteration + 1, digest: "new", path: "new" });
      assert.deepEqual(
        again.samplesOf(iteration + 1).map(({ id }) => id),
        [free[0]],
      );
      assert.equal(paths(again)[0], "new");
      const third = await again.beginLineage(() => true);
      assert.deepEqual([third.lineage, third.iteration, third.checkpoint?.lineage], [3, iteration + 1, 2]);
    });
  }

  test("a start goes on with its checkpoint's weights, and what it trains is its own", async () => {
    const { store, path } = await trained(); // three iterations
    store.close();
    const again = openStore(path);
    await again.beginLineage(({ path }) => path === "c1");
    await again.beginLineage(({ path }) => path === "c1");
    const origins = (lineage: number) => [0, 1, 2].map((iteration) => again.originOf({ lineage, iteration }));
    assert.deepEqual(origins(1), [0, 1, 1]);
    assert.deepEqual(
      [2, 3].map((lineage) => again.originOf({ lineage, iteration: 1 })),
      [1, 1],
    );
    assert.deepEqual(
      [2, 3].map((lineage) => again.originOf({ lineage, iteration: 2 })),
      [2, 3],
    );
    again.close();
  });

  test("checkpoints that are not kept are not offered", async () => {
    const { store } = await trained();
    assert.deepEqual(store.keepCheckpoints(2), ["c2", "c1"]);
    assert.deepEqual(paths(store), ["c2", "c1"]);
    assert.deepEqual(store.keepCheckpoints(2), ["c2", "c1"]);
  });

  test("submissions go when a checkpoint holds their samples, the best ones stay", async () => {
    const { store } = await newStore();
    const text = deflateSync("x");
    store.addSamples(["a", "b", "c", "d", "e"].map((id) => newSample(id)));
    for (let lease = store.leases.takeAll(["actor-0"])[0]; lease; lease = store.leases.takeAll(["actor-0"])[0])
      store.leases.accept("actor-0", lease, newResult({ submissionBytes: 1, submissionSha256: "ab" }), text);
    for (const [id, score] of Object.entries({ a: 1, b: 2, c: 3, d: 4 }))
      store.setGrade(id, { valid: true, score, reward: score, reason: "valid" });
    store.commitIteration({ iteration: 1, sampleIds: ["a", "b", "c", "e"], metrics: {} });
    const kept = () => ["a", "b", "c", "d", "e"].filter((id) => store.submission(id) !== undefined);
    assert.deepEqual(kept(), ["a", "b", "c", "d", "e"]);
    store.commitCheckpoint({ iteration: 1, digest: "d1", path: "c1" });
    // a is best where lower scores are, d where higher ones are; d has trained nothing yet, too.
    assert.deepEqual(kept(), ["a", "d"]);
  });

  test("submissions of an evaluation between iterations go with the next checkpoint, those of the others stay", async () => {
    const { store } = await newStore();
    const purposes = { a: "evaluation-before", b: "evaluation-during-1-1", c: "evaluation-during-1-1" };
    for (const [id, purpose] of Object.entries(purposes)) store.addSamples([newSample(id, { purpose, iteration: 1 })]);
    for (let lease = store.leases.takeAll(["actor-0"])[0]; lease; lease = store.leases.takeAll(["actor-0"])[0])
      store.leases.accept("actor-0", lease, newResult({ submissionBytes: 1 }), deflateSync("x"));
    for (const [id, score] of Object.entries({ a: 1, b: 2, c: 3 }))
      store.setGrade(id, { valid: true, score, reward: score, reason: "valid" });
    const kept = () => Object.keys(purposes).filter((id) => store.submission(id) !== undefined);
    for (const [iteration, ids] of [
      [1, ["a", "b", "c"]],
      [2, ["a", "c"]],
    ] as const) {
      store.commitIteration({ iteration, sampleIds: [], metrics: {} });
      store.commitCheckpoint({ iteration, digest: "d", path: `c${iteration}` });
      assert.deepEqual(kept(), ids, "the best one stays, and what may still be evaluated");
    }
  });

  test("the store says when no lineage was begun", () => {
    const store = openStore(newPath());
    assert.throws(
      () => store.commitIteration({ iteration: 1, sampleIds: [], metrics: {} }),
      fails("conflict", /beginLineage/),
    );
  });
});

describe("the file", () => {
  test("a second opener takes over; the first one's writes fail and change nothing", async () => {
    const { store, path } = await newStore();
    store.addSamples([newSample("a"), newSample("b")]);
    const lease = taken(store);
    const second = openStore(path);
    await second.beginLineage(() => true);
    const writes: Record<string, () => unknown> = {
      addSamples: () => store.addSamples([newSample("c")]),
      take: () => store.leases.takeAll(["actor-0"])[0],
      accept: () => store.leases.accept("actor-0", lease, newResult()),
      setGrade: () => store.setGrade("a", { valid: false, reward: 0, reason: "" }),
      commit: () => store.commitIteration({ iteration: 1, sampleIds: [], metrics: {} }),
    };
    for (const write of Object.values(writes)) assert.throws(write, fails("fenced", /newer learner/));
    const { queued, running } = second.counts();
    assert.deepEqual({ queued, running }, { queued: 1, running: 1 });
    assert.equal(second.leases.accept("actor-0", lease, newResult()), "accepted");
  });

  test("a reader takes nothing over and cannot write", async () => {
    const { store, path } = await newStore();
    store.addSamples([newSample("a")]);
    const reader = openStore(path, { readOnly: true });
    assert.equal(reader.counts().queued, 1);
    assert.throws(() => reader.addSamples([newSample("b")]), fails("readOnly"));
    store.addSamples([newSample("b")]);
    assert.equal(reader.counts().queued, 2);
  });

  test("running attempts survive a restart and have the grace period from when actors can reach the learner", async () => {
    const { store, path, clock } = await newStore();
    store.addSamples([newSample("a"), newSample("b")]);
    const [a] = [taken(store), taken(store)];
    store.close();
    clock.seconds += 1000;
    const again = openStore(path, { leaseGraceSeconds: 5, maxAttempts: 9, now: () => clock.seconds * 1000 });
    clock.seconds += 100; // loading weights
    again.leases.startGrace();
    clock.seconds += 4;
    assert.equal(again.leases.expire(), 0);
    assert.deepEqual(again.leases.reconcile("actor-0", [a]), []);
    assert.equal(again.counts().queued, 1, "b is not held any more");
    clock.seconds += 50;
    assert.equal(again.leases.accept("actor-0", a, newResult()), "accepted");
  });

  const damage: [string, string, (path: string) => void][] = [
    ["is no database", "open", (path) => writeFileSync(path, "hello, this is a text and not a database".repeat(20))],
    [
      "is another program's database",
      "open",
      (path) => new DatabaseSync(path).exec("CREATE TABLE t (x); PRAGMA user_version = 1"),
    ],
    [
      "was made by a later version",
      "schemaVersion",
      (path) => {
        openStore(path).close();
        new DatabaseSync(path).exec("PRAGMA user_version = 99");
      },
    ],
    [
      "is cut off",
      "open",
      (path) => {
        openStore(path).close();
        truncateSync(path, 8192);
      },
    ],
  ];
  for (const [name, code, make] of damage) {
    test(`refused with a clear error: it ${name}`, () => {
      const path = newPath();
      make(path);
      assert.throws(() => openStore(path), fails(code, new RegExp(path)));
    });
  }

  test("a folder that does not exist, or a lock that does not go away, is named", async () => {
    assert.throws(() => openStore(join(folder, "no", "store.sqlite")), fails("open", /folder must exist/));
    const { store, path } = await newStore({ busySeconds: 0.05 });
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    assert.throws(() => store.addSamples([newSample("a")]), fails("busy", /locked by another process/));
    other.exec("ROLLBACK");
    store.addSamples([newSample("a")]);
  });

  const mayMount = process.getuid?.() === 0;
  test("a disk that is too full to open the store is named as such", { skip: !mayMount && "needs root" }, (context) => {
    const disk = join(folder, "disk");
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", disk]);
    context.after(() => execFileSync("umount", ["--lazy", disk]));
    const path = join(disk, "store.sqlite");
    openStore(path).close();
    assert.throws(() => writeFileSync(join(disk, "filler"), Buffer.alloc(2 ** 20)), /ENOSPC/);
    assert.throws(() => openStore(path), fails("diskFull", /the disk of \S+ is full/));
    rmSync(join(disk, "filler"));
    openStore(path).close();
  });

  test("a full disk is named, loses nothing that was acknowledged, and writing goes on when there is space", async () => {
    const { store, path } = await newStore();
    store.addSamples([newSample("a")]);
    store.close();
    const big = newSample("big", { solution: "x".repeat(1e6) });
    // A limit on the file stands for the disk's.
    const full = openStore(path, { maxBytes: 300_000 });
    assert.throws(() => full.addSamples([newSample("b"), big]), fails("diskFull", /free space/));
    assert.equal(full.counts().queued, 1);
    full.addSamples([newSample("b")]);
    full.close();
    const enlarged = openStore(path);
    enlarged.addSamples([big]);
    assert.equal(enlarged.counts().queued, 3);
  });

  test("a store of the version before is read as it is, and brought up to date by whoever writes", async () => {
    const { store, path } = await newStore();
    store.addSamples([newSample("a")]);
    const lease = taken(store);
    assert.equal(store.leases.accept("actor-0", lease, newResult()), "accepted");
    store.setGrade("a", { valid: true, score: 1, reward: 1, reason: "valid" });
    store.close();
    const old = new DatabaseSync(path);
    old.exec("ALTER TABLE samples DROP COLUMN truncated");
    for (const column of ["guards", "clamped", "capped"]) old.exec(`ALTER TABLE grades DROP COLUMN ${column}`);
    old.exec("DROP INDEX attempts_disrupted; ALTER TABLE attempts DROP COLUMN disrupted");
    old.exec("ALTER TABLE attempts DROP COLUMN sandbox_broke");
    old.exec("PRAGMA user_version = 2");
    old.close();
    const none = { guards: [], clamped: false, capped: false };
    const graded = { valid: true, score: 1, reward: 1, reason: "valid", family: undefined };
    const reader = openStore(path, { readOnly: true });
    assert.deepEqual(reader.samples(["a"])[0].grade, { ...graded, ...none });
    reader.close();
    const writer = openStore(path);
    assert.deepEqual(writer.samples(["a"])[0].grade, { ...graded, ...none });
    const flagged = { guards: ["perfect"], clamped: true, capped: true };
    writer.setGrade("a", { ...graded, ...flagged });
    writer.close();
    assert.deepEqual(openStore(path).samples(["a"])[0].grade, { ...graded, ...flagged });
  });

  test("whether a response was cut is known, or unknown in a store of the version before, which a writer goes on with", async () => {
    const { store, path } = await newStore();
    store.addSamples([
      newSample("cut", { truncated: true }),
      newSample("ended", { truncated: false }),
      newSample("old"),
    ]);
    const known = (at: string, ids: string[], options = {}) => {
      const opened = openStore(at, options);
      const found = opened.samples(ids).map(({ truncated }) => truncated);
      opened.close();
      return found;
    };
    store.close();
    assert.deepEqual(known(path, ["cut", "ended", "old"]), [true, false, undefined]);
    const old = new DatabaseSync(path);
    old.exec("ALTER TABLE samples DROP COLUMN truncated; PRAGMA user_version = 4");
    old.close();
    assert.deepEqual(known(path, ["cut", "ended"], { readOnly: true }), [undefined, undefined]);
    const writer = openStore(path);
    writer.addSamples([newSample("new", { truncated: true })]);
    writer.close();
    assert.deepEqual(known(path, ["cut", "ended", "new"]), [undefined, undefined, true]);
  });

  test("a copy of the file alone can be read after a clean close", async () => {
    const { store, path } = await newStore();
    store.addSamples([newSample("a")]);
    store.close();
    const copy = newPath();
    copyFileSync(path, copy);
    assert.equal(openStore(copy, { readOnly: true }).counts().queued, 1);
  });
});
