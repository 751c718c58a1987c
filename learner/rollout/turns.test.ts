import assert from "node:assert/strict";
import { test } from "node:test";
import { mapInTurns } from "./turns.ts";

const work = (milliseconds: number) => {
  for (const start = performance.now(); performance.now() - start < milliseconds; );
};

test("results come in order, and other work runs between the items", async () => {
  let turns = 0;
  const other = () => {
    turns++;
    next = setImmediate(other);
  };
  let next = setImmediate(other);
  const results = await mapInTurns([3, 1, 2], (item, index) => {
    work(15);
    return [item, index];
  });
  clearImmediate(next);
  assert.deepEqual(results, [
    [3, 0],
    [1, 1],
    [2, 2],
  ]);
  assert.ok(turns >= 2, `${turns} turns`);
});

test("short work is done at once, and its error is thrown to the caller", async () => {
  let turned = false;
  setImmediate(() => {
    turned = true;
  });
  const done = mapInTurns([1, 2, 3], (item) => item);
  assert.deepEqual(await done, [1, 2, 3]);
  assert.equal(turned, false);
  await assert.rejects(
    mapInTurns([1], () => {
      throw new Error("no");
    }),
    /^Error: no$/,
  );
});
