/** Tests how samples, results and grades are stored and read back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { newResult, newSample } from "./store.fixture.ts";
import { openStore } from "./store.ts";
import { fails, finishAll, newStore, taken } from "./store-tests.fixture.ts";

test("samples read back equal the stored ones", async () => {
  const { store } = await newStore();
  const sample = newSample("a", {
    kind: "debug",
    previous: "before",
    depth: 2,
    previousStep: "importError",
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

test("given sequence numbers may leave gaps, decide the order of leases, and are continued after the highest", async () => {
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

test("results, submissions and grades read back equal the stored ones", async () => {
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
  ["an id that exists already", { id: "a" }, /UNIQUE/],
  ["log-probs of another length", { behaviourLogProbs: new Float32Array(2) }, /differ in length/],
  ["a queued sample without a program", { instrumented: undefined }, /without an instrumented program/],
  ["a kind that does not exist", { kind: "other" as "scratch" }, /CHECK/],
];
for (const [name, change, message] of refused) {
  test(`addSamples refuses ${name} and stores none of the call's samples`, async () => {
    const { store } = await newStore();
    store.addSamples([newSample("a")]);
    assert.throws(() => store.addSamples([newSample("b"), newSample("c", change)]), fails("conflict", message));
    assert.equal(store.counts().queued, 1);
  });
}

test("a batch holds the trainable samples that were dispatched first, of one purpose", async () => {
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

test("openGroups counts trainable samples; groupSamples returns whole groups", async () => {
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

test("the best sample follows the metric's direction; among equals the first wins", async () => {
  const { store } = await newStore();
  store.addSamples(["a", "b", "c", "d"].map((id) => newSample(id)));
  finishAll(store, { submission: "x" });
  const grades = { a: 2, b: 1, c: 2, d: 1 };
  for (const [id, score] of Object.entries(grades))
    store.setGrade(id, { valid: true, score, reward: score, reason: "valid" });
  store.setGrade("d", { valid: false, reward: -10, reason: "failed" });
  assert.equal(store.bestSample("diamonds", "Higher")?.id, "a");
  assert.equal(store.bestSample("diamonds", "Lower")?.id, "b");
  assert.equal(store.bestSample("wage", "Lower"), undefined);
});

test("failed solutions come back newest first, below a depth, and a restart forgets those of iterations that it drops", async () => {
  const { store, path } = await newStore();
  const ids = ["a", "b", "c"];
  store.addSamples([
    newSample("a"),
    newSample("b", { kind: "debug", previous: "a", depth: 1, previousStep: "failed" }),
    newSample("c", { kind: "debug", previous: "b", depth: 2, previousStep: "importError" }),
    newSample("other", { task: "wage" }),
  ]);
  finishAll(store);
  for (const id of [...ids, "other"]) store.setGrade(id, { valid: false, reward: -10, reason: "failed" });
  store.commitIteration({ iteration: 1, sampleIds: ["a", "b"], metrics: {} });
  store.commitCheckpoint({ iteration: 1, digest: "d", path: "c1" });
  store.addFailedSolutions(["a", "b"], 1);
  store.addFailedSolutions(["c", "other"], 2);
  const found = (of: typeof store, maxDepth = 9, limit = 9) =>
    of.failedSolutions("diamonds", { limit, maxDepth }).map(({ id, depth, previousStep }) => [id, depth, previousStep]);
  const [a, b, c] = [
    ["a", undefined, undefined],
    ["b", 1, "failed"],
    ["c", 2, "importError"],
  ];
  assert.deepEqual(found(store), [c, b, a]);
  assert.deepEqual(found(store, 2), [b, a]);
  assert.deepEqual(found(store, 1), [a]);
  assert.deepEqual(found(store, 9, 1), [c]);
  store.close();
  const again = openStore(path);
  await again.beginLineage(() => true);
  assert.deepEqual(found(again), [b, a]);
});
