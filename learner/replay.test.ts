import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { recordedBatches } from "./replay.ts";
import { newResult, newSample, scratchFolder } from "./store/store.fixture.ts";
import { openStore } from "./store/store.ts";

test("a replay gives each iteration its batch in order and the durations of abandoned programs", async () => {
  const path = join(scratchFolder(), "store.sqlite");
  let clock = 0; // Unix milliseconds
  const store = openStore(path, { now: () => clock });
  await store.beginLineage(() => true);
  // In each iteration two programs finish and one is thrown away; the version is the iteration before.
  for (const iteration of [1, 2]) {
    const ids = [1, 2, 3].map((i) => `s${iteration}-${i}`);
    store.addSamples(ids.map((id) => newSample(id, { iteration: iteration - 1, lineage: store.lineage })));
    const leases = ids.map(() => store.leases.takeAll(["actor-0"])[0]!);
    clock += 60_000;
    store.leases.extend("actor-0", [{ ...leases[2]!, elapsedSeconds: 10 * iteration }]);
    for (const lease of leases.slice(0, 2)) store.leases.accept("actor-0", lease, newResult({ durationSeconds: 5 }));
    store.discardUnfinished("the batch is complete");
    store.commitIteration({ iteration, sampleIds: [ids[1]!, ids[0]!], droppedIds: [], metrics: {} });
  }
  store.close();
  const recorded = recordedBatches(path, "Discard");
  for (const iteration of [2, 1]) {
    const { batch, abandonedSeconds } = recorded.batch(iteration);
    assert.deepEqual(
      batch.map(({ id }) => id),
      [`s${iteration}-2`, `s${iteration}-1`],
    );
    assert.deepEqual(abandonedSeconds, [10 * iteration]);
  }
  assert.throws(() => recorded.batch(3), /iteration 3 is not recorded; lower stopping.iterations/);
});

test("a lost sample weighs nothing in a replay of a run that discards no samples, as in training", async () => {
  const path = join(scratchFolder(), "store.sqlite");
  let clock = 0;
  const store = openStore(path, { maxAttempts: 1, now: () => clock });
  await store.beginLineage(() => true);
  store.addSamples(["a", "lost"].map((id) => newSample(id, { lineage: store.lineage })));
  const [a, lost] = [1, 2].map(() => store.leases.takeAll(["actor-0"])[0]!);
  store.leases.accept("actor-0", a!, newResult());
  clock += 60_000;
  store.leases.extend("actor-0", [{ ...lost!, elapsedSeconds: 7 }]);
  store.leases.fail("actor-0", lost!, "its sandbox ended");
  store.commitIteration({ iteration: 1, sampleIds: ["a"], droppedIds: [], metrics: {} });
  store.close();
  assert.deepEqual(recordedBatches(path, "CarryOver").batch(1).abandonedSeconds, []);
  assert.deepEqual(recordedBatches(path, "Discard").batch(1).abandonedSeconds, [7]);
});
