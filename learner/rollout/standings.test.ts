/** What Rank and Improvement compare a sample with depends on the sample alone, also after restarts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newSample } from "../store/store.fixture.ts";
import { openStore, type Store } from "../store/store.ts";
import { finishAll, newStore } from "../store/store-tests.fixture.ts";
import type { NewSample } from "../store/types.ts";
import { Standings } from "./standings.ts";

/** Adds finished samples with grades; a score of undefined is an invalid submission. */
function add(store: Store, samples: [id: string, score: number | undefined, change?: Partial<NewSample>][]): string[] {
  store.addSamples(samples.map(([id, , change]) => newSample(id, { lineage: store.lineage, ...change })));
  finishAll(store, { submission: "x" });
  for (const [id, score] of samples)
    store.setGrade(
      id,
      score === undefined
        ? { valid: false, reward: -10, reason: "failed" }
        : { valid: true, score, reward: score, reason: "valid" },
    );
  return samples.map(([id]) => id);
}
function iterate(store: Store, iteration: number, samples: Parameters<typeof add>[1]): void {
  store.commitIteration({ iteration, sampleIds: add(store, samples), metrics: {} });
  store.commitCheckpoint({ iteration, digest: "d", path: `c${iteration}` });
}
const earlier = (store: Store, iteration: number, lineage = store.lineage, task = "diamonds") => [
  ...new Standings(store).of({ id: "none", task, lineage, iteration }).earlierScores,
];

test("a rank counts the valid samples of the task that earlier batches trained on", async () => {
  const { store } = await newStore();
  iterate(store, 1, [
    ["a", 3],
    ["b", undefined],
    ["c", 5, { task: "wage" }],
  ]);
  add(store, [["not trained on", 9]]);
  add(store, [["evaluated", 9, { purpose: "evaluation-during-1" }]]);
  iterate(store, 2, [["d", 1]]);
  assert.deepEqual(
    [0, 1, 2].map((iteration) => earlier(store, iteration)),
    [[], [3], [3, 1]],
  );
  assert.deepEqual(earlier(store, 2, store.lineage, "wage"), [5]);
  const standings = new Standings(store);
  const read = (iteration: number) => [
    ...standings.of({ id: "none", task: "diamonds", lineage: 1, iteration }).earlierScores,
  ];
  assert.deepEqual([read(2), read(1), read(2)], [[3, 1], [3], [3, 1]], "an earlier version after a later one");
  store.close();
});

test("a sample of a lost lineage keeps its standing; the lineage after it has the batches of its checkpoint", async () => {
  const { store, path } = await newStore();
  for (const iteration of [1, 2, 3]) iterate(store, iteration, [[`a${iteration}`, iteration]]);
  const before = [0, 1, 2, 3].map((iteration) => earlier(store, iteration, 1));
  store.close();
  const again = openStore(path);
  await again.beginLineage(({ path }) => path === "c1");
  assert.deepEqual(
    [0, 1, 2, 3].map((iteration) => earlier(again, iteration, 1)),
    before,
  );
  iterate(again, 2, [["b2", 20]]);
  assert.deepEqual(
    [1, 2].map((iteration) => earlier(again, iteration)),
    [[1], [1, 20]],
  );
  await again.beginLineage(({ path }) => path === "c2");
  assert.deepEqual(earlier(again, 2), [1, 20]);
  again.close();
});

test("the parent is the nearest ancestor with a score", async () => {
  const { store } = await newStore();
  add(store, [
    ["draft", 0],
    ["improved", 7, { kind: "improve", previous: "draft" }],
    ["broken", undefined, { kind: "improve", previous: "draft" }],
    ["still broken", undefined, { kind: "debug", previous: "broken" }],
    ["fixed", 2, { kind: "debug", previous: "still broken" }],
    ["broken draft", undefined],
    ["fixed draft", 2, { kind: "debug", previous: "broken draft" }],
  ]);
  const standings = new Standings(store);
  const parent = (id: string) => standings.of({ id, task: "diamonds", lineage: 1, iteration: 0 }).parentScore;
  assert.deepEqual(["draft", "improved", "fixed", "fixed draft"].map(parent), [undefined, 0, 0, undefined]);
  store.close();
});
