/** Tests iterations, checkpoints and restarts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newSample } from "./store.fixture.ts";
import { openStore, type Store } from "./store.ts";
import { fails, finishAll, newPath, newStore } from "./store-tests.fixture.ts";
import type { CheckpointRow } from "./types.ts";

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

test("trained samples are not offered again and can be read in batch order", async () => {
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
    "an iteration that exists already",
    (s) => s.commitIteration({ iteration: 3, sampleIds: ["e"], metrics: {} }),
    /the last one was 3/,
  ],
  [
    "an iteration after the next one",
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
  test(`a commit of ${name} is refused and changes nothing`, async () => {
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
  test(`a restart with the valid checkpoints [${valid}] resumes after iteration ${iteration}`, async () => {
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

test("originOf names the lineage whose weights a start loaded, and the start's own lineage for later iterations", async () => {
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

test("keepCheckpoints(n) leaves the newest n", async () => {
  const { store } = await trained();
  assert.deepEqual(store.keepCheckpoints(2), ["c2", "c1"]);
  assert.deepEqual(paths(store), ["c2", "c1"]);
  assert.deepEqual(store.keepCheckpoints(2), ["c2", "c1"]);
});

test("a checkpoint deletes the submissions of its samples, except the best ones", async () => {
  const { store } = await newStore();
  const ids = ["a", "b", "c", "d", "e", "f", "g"];
  store.addSamples(ids.map((id) => newSample(id)));
  finishAll(store, { submission: "x" });
  for (const [id, score] of Object.entries({ a: 1, b: 2, c: 3, d: 4, f: 1, g: 4 }))
    store.setGrade(id, { valid: true, score, reward: score, reason: "valid" });
  store.commitIteration({ iteration: 1, sampleIds: ["a", "b", "c", "e", "f", "g"], metrics: {} });
  const kept = () => ids.filter((id) => store.submission(id) !== undefined);
  assert.deepEqual(kept(), ids);
  store.commitCheckpoint({ iteration: 1, digest: "d1", path: "c1" });
  // a is the best if lower scores are better, d if higher scores are: each the first of equals. No iteration has trained on d yet.
  assert.deepEqual(kept(), ["a", "d"]);
});

test("a checkpoint deletes submissions of evaluations during earlier iterations, except the best ones", async () => {
  const { store } = await newStore();
  const purposes = { a: "evaluation-before", b: "evaluation-during-1-1", c: "evaluation-during-1-1" };
  for (const [id, purpose] of Object.entries(purposes)) store.addSamples([newSample(id, { purpose, iteration: 1 })]);
  finishAll(store, { submission: "x" });
  for (const [id, score] of Object.entries({ a: 1, b: 2, c: 3 }))
    store.setGrade(id, { valid: true, score, reward: score, reason: "valid" });
  const kept = () => Object.keys(purposes).filter((id) => store.submission(id) !== undefined);
  for (const [iteration, ids] of [
    [1, ["a", "b", "c"]],
    [2, ["a", "c"]],
  ] as const) {
    store.commitIteration({ iteration, sampleIds: [], metrics: {} });
    store.commitCheckpoint({ iteration, digest: "d", path: `c${iteration}` });
    assert.deepEqual(kept(), ids, "the best submission and those of running evaluations stay");
  }
});

test("a commit without beginLineage is refused", () => {
  const store = openStore(newPath());
  assert.throws(
    () => store.commitIteration({ iteration: 1, sampleIds: [], metrics: {} }),
    fails("conflict", /beginLineage/),
  );
});
