import assert from "node:assert/strict";
import { test } from "node:test";
import { twoIterations } from "./collect.fixture.ts";

// The first two of the six samples in flight are the slowest.
const SLOW_FIRST = { speeds: [5, 6, 1, 2, 3, 4], together: 5 };

test("CarryOver keeps samples beyond the batch in flight, trains on them next and launches up to m B in all", async () => {
  const { batches, launches, iterations } = await twoIterations({ collection: "CarryOver" }, SLOW_FIRST);
  assert.deepEqual(batches[0], ["s1", "s3", "s4", "s5"]);
  assert.deepEqual(batches[1]!.slice(0, 2), ["s2", "s6"]);
  assert.deepEqual(launches, [6, 4]);
  assert.deepEqual(iterations[0]!.surplusIds, []);
});

test("Discard trains on no sample of an earlier iteration, finished or not", async () => {
  const { batches, launches, counts, iterations } = await twoIterations({ collection: "Discard" }, SLOW_FIRST);
  assert.deepEqual(batches[0], ["s1", "s3", "s4", "s5"]);
  assert.deepEqual(iterations[0]!.surplusIds, ["s6"], "finished beyond B");
  assert.deepEqual(iterations[0]!.abandonedSeconds, [3], "s2 was running");
  assert.deepEqual(launches, [6, 6]);
  assert.ok(batches[1]!.every((id) => Number(id.slice(1)) > 6));
  assert.equal(counts.queued + counts.running, 0);
});

test("WaitAll launches B samples and waits for all of them", async () => {
  const { batches, launches } = await twoIterations({ collection: "WaitAll" }, { speeds: [4, 3, 2, 1], together: 1 });
  assert.deepEqual(launches, [4, 4]);
  assert.deepEqual(batches, [
    ["s1", "s2", "s3", "s4"],
    ["s5", "s6", "s7", "s8"],
  ]);
});

test("WaitAll also waits for the samples beyond a batch that a restart finds", async () => {
  const slow = { speeds: [6, 5, 4, 3, 2, 1], together: 1, before: 6 };
  const { batches, launches } = await twoIterations({ collection: "WaitAll" }, slow);
  assert.deepEqual(batches[0], ["s1", "s2", "s3", "s4"], "though s3 to s6 end first");
  assert.deepEqual(batches[1]!.slice(0, 2), ["s5", "s6"]);
  assert.deepEqual(launches, [2]);
});

test("stalenessPolicy Wait has no more samples in flight than later batches can use within maxStaleness", async () => {
  const slow = { speeds: [6, 5, 4, 3, 2, 1], together: 6 };
  const bound = await twoIterations({ oversampling: 3, maxStaleness: 1, stalenessPolicy: "Wait" }, slow);
  assert.deepEqual(bound.launches, [8, 4], "(maxStaleness + 1) B, then as many as the batch used");
  const free = await twoIterations({ oversampling: 3, maxStaleness: 1, stalenessPolicy: "Drop" }, slow);
  assert.deepEqual(free.launches, [12, 4]);
});

test("stalenessPolicy Wait waits for old executions before more are left than later batches can take", async () => {
  // 8 samples are in flight, and the first batch takes 4. The other 4 are slower than later ones and would be in the third batch, two
  // iterations old.
  const slow = { speeds: [1, 1, 1, 1, 9, 9, 9, 9, 2, 2, 2, 2], together: 2 };
  const options = { oversampling: 2, maxStaleness: 1 };
  const { batches, iterations } = await twoIterations({ ...options, stalenessPolicy: "Wait" }, slow);
  assert.deepEqual(batches[1], ["s5", "s6", "s7", "s8"]);
  assert.deepEqual([iterations[0]!.staleWaited, iterations[1]!.staleWaited], [0, 4]);
  const free = await twoIterations({ ...options, stalenessPolicy: "Drop" }, slow);
  assert.deepEqual(free.batches[1], ["s9", "s10", "s11", "s12"], "Drop does not wait");
});

test("stalenessPolicy Wait also holds versions between the oldest and the newest to the bound", async () => {
  // With maxStaleness 2, samples of the first version may train in iteration 3, but at most 4 of its 12 may be left by then.
  const slow = { speeds: [...new Array(12).fill(9), 1, 1, 1, 1], together: 4 };
  const { batches, iterations } = await twoIterations(
    { oversampling: 3, maxStaleness: 2, stalenessPolicy: "Wait" },
    slow,
  );
  assert.deepEqual(batches[1], ["s5", "s6", "s7", "s8"], "not the fast s13 to s16");
  assert.ok(iterations[1]!.staleWaited > 0);
});

test("stalenessPolicy Wait waits for an execution before it is too old; Drop leaves the execution out", async () => {
  // s1 ends last; by iteration 2 it is one version old.
  const slow = { speeds: [99, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], together: 4 };
  const waited = await twoIterations({ collection: "CarryOver", maxStaleness: 0, stalenessPolicy: "Wait" }, slow);
  assert.ok(waited.batches[0]!.includes("s1"), "waited for in its own iteration");
  const dropped = await twoIterations({ collection: "CarryOver", maxStaleness: 0, stalenessPolicy: "Drop" }, slow);
  assert.ok(!dropped.batches.flat().includes("s1"));
  assert.ok(dropped.iterations[1]!.staleIds.length > 0, "finished, but too old");
});

const PAIRS = { baseline: "GRPO", groupSize: 2 } as const;

test("a batch of groups has whole groups, the oldest that have no member under way", async () => {
  const slow = { speeds: [99, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], together: 5 };
  const { batches, launches } = await twoIterations({ ...PAIRS, oversampling: 2 }, slow);
  assert.deepEqual(batches[0], ["s3", "s4", "s5", "s6"], "s2 has finished, its group has not");
  assert.deepEqual(launches, [4, 2], "prompts: m B = 8 samples, then as many as were used");
  assert.deepEqual(batches[1], ["s7", "s8", "s9", "s10"]);
});

test("a batch of groups is smaller by its lost members", async () => {
  const { batches, iterations } = await twoIterations(
    { ...PAIRS, batchSize: 6, groupSize: 3, oversampling: 1 },
    { speeds: [1], together: 6, lost: ["s2"] },
  );
  assert.deepEqual(batches[0], ["s1", "s3", "s4", "s5", "s6"]);
  assert.deepEqual(iterations[0]!.brokenIds, []);
});

test("another group replaces a group that has lost all but one member", async () => {
  const lost = { speeds: [1], together: 4, lost: ["s2", "s5", "s6"] };
  const { batches, launches, iterations, counts } = await twoIterations({ ...PAIRS, oversampling: 1 }, lost);
  assert.deepEqual(batches[0], ["s3", "s4", "s7", "s8"]);
  assert.deepEqual(launches.slice(0, 3), [2, 1, 1]);
  assert.deepEqual(iterations[0]!.brokenIds, ["s1"]);
  assert.deepEqual([counts.dropped, counts.lost], [1, 3]);
});

test("groups that are older than maxStaleness are dropped whole", async () => {
  const slow = { speeds: [9, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12], together: 5 };
  const dropped = await twoIterations({ ...PAIRS, maxStaleness: 0, stalenessPolicy: "Drop" }, slow);
  assert.deepEqual(
    dropped.batches.flat().filter((id) => ["s1", "s2"].includes(id)),
    [],
  );
  assert.deepEqual(dropped.iterations[1]!.staleIds, ["s1", "s2"]);
});

test("Discard throws away the finished members of incomplete groups", async () => {
  const slow = { speeds: [99, 1, 2, 3, 4, 5], together: 5 };
  const { batches, iterations, counts } = await twoIterations({ ...PAIRS, collection: "Discard" }, slow);
  assert.deepEqual(batches[0], ["s3", "s4", "s5", "s6"]);
  assert.deepEqual(iterations[0]!.surplusIds, ["s2"]);
  assert.equal(counts.queued + counts.running, 0);
});

test("WaitAll waits for every member of every group", async () => {
  const { batches } = await twoIterations({ ...PAIRS, collection: "WaitAll" }, { speeds: [4, 3, 2, 1], together: 1 });
  assert.deepEqual(batches[0], ["s1", "s2", "s3", "s4"]);
});

/** Pairs with rewards that differ, but for the groups of these first members. */
const rewardsBut = (alike: number[]) => (sequence: number) =>
  sequence % 2 === 0 && !alike.includes(sequence - 1) ? -9 : -10;

test("zeroSignal Resample replaces groups that teach nothing, as many as oversampling allows beyond the batch", async () => {
  const resampled = (alike: number[], algorithm: object = {}) =>
    twoIterations(
      { ...PAIRS, collection: "WaitAll", oversampling: 1.5, zeroSignal: "Resample", ...algorithm },
      { speeds: [1], together: 4, rewardOf: rewardsBut(alike) },
    );
  const { batches, iterations, counts, launches } = await resampled([1]);
  assert.deepEqual(batches, [
    ["s3", "s4", "s5", "s6"],
    ["s7", "s8", "s9", "s10"],
  ]);
  assert.deepEqual(launches, [2, 1, 2]);
  assert.deepEqual([iterations[0]!.zeroSignalIds, iterations[1]!.zeroSignalIds], [["s1", "s2"], []]);
  assert.equal(counts.dropped, 2);
  const bounded = await resampled([1, 3, 5]);
  assert.deepEqual(
    bounded.batches[0],
    ["s3", "s4", "s5", "s6"],
    "one group of two may be thrown away, the others stay",
  );
  assert.deepEqual(bounded.iterations[0]!.zeroSignalIds, ["s1", "s2"]);
  const kept = await resampled([1], { zeroSignal: "Keep" });
  assert.deepEqual(kept.batches[0], ["s1", "s2", "s3", "s4"]);
  const carried = await resampled([1, 3], { collection: "CarryOver", oversampling: 2 });
  assert.deepEqual(carried.batches, [
    ["s5", "s6", "s7", "s8"],
    ["s9", "s10", "s11", "s12"],
  ]);
  assert.deepEqual(carried.iterations[0]!.zeroSignalIds, ["s1", "s2", "s3", "s4"]);
  const discarded = await resampled([1], { collection: "Discard" });
  assert.deepEqual(discarded.iterations[0]!.zeroSignalIds, ["s1", "s2"]);
  assert.deepEqual(discarded.iterations[0]!.surplusIds, []);
});
