import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Turn } from "./turn.ts";

/** Returns a turn over a store that records its commits. */
function setUp({ deal = () => {} } = {}) {
  const happened: string[] = [];
  const store = {
    failure: undefined as Error | undefined,
    together(works: readonly (() => void)[]): unknown[] {
      happened.push("begin");
      const faults = works.map((work) => {
        try {
          work();
          return undefined;
        } catch (error) {
          return error;
        }
      });
      if (store.failure) throw store.failure;
      happened.push("commit");
      return faults;
    },
  };
  const note = (what: string) => () => void happened.push(what);
  const turn = new Turn({
    store,
    deal: () => {
      happened.push("deal");
      deal();
    },
    onFailure: (error) => void happened.push(`failed: ${(error as Error).message}`),
  });
  const write = (name: string, work = note(name)) =>
    turn.write(work, (error) => void happened.push(`${name} failed: ${(error as Error).message}`));
  return { turn, write, happened, store };
}

test("the results of one turn of the event loop and the leases that follow share one commit", async () => {
  const { turn, write, happened } = setUp();
  write("a");
  turn.deal();
  write("b");
  assert.deepEqual(happened, []);
  await nextTurn();
  assert.deepEqual(happened, ["begin", "a", "b", "deal", "commit"]);
  write("c");
  await nextTurn();
  assert.deepEqual(happened.slice(5), ["begin", "c", "deal", "commit"]);
});

test("dealing without results begins no transaction", async () => {
  const { turn, happened } = setUp();
  turn.deal();
  turn.deal();
  await nextTurn();
  assert.deepEqual(happened, ["deal"]);
});

test("a write that throws gets its own error; all writes get the error of a failed commit", async () => {
  const { write, happened, store } = setUp();
  const broken = () => {
    throw new Error("a bad result");
  };
  write("a", broken);
  write("b");
  await nextTurn();
  assert.deepEqual(happened, ["begin", "b", "deal", "commit", "a failed: a bad result"]);
  store.failure = new Error("disk full");
  write("c");
  await nextTurn();
  assert.deepEqual(happened.slice(5), ["begin", "c", "deal", "c failed: disk full", "failed: disk full"]);
});

test("a fault in dealing is reported, and the next turn deals again", async () => {
  let faults = 1;
  const { turn, happened } = setUp({
    deal: () => {
      if (faults-- > 0) throw new Error("locked");
    },
  });
  turn.deal();
  await nextTurn();
  turn.deal();
  await nextTurn();
  assert.deepEqual(happened, ["deal", "failed: locked", "deal"]);
});

test("closing writes the pending results and deals no more leases", async () => {
  const { turn, write, happened } = setUp();
  write("a");
  turn.close();
  assert.deepEqual(happened, ["begin", "a", "commit"]);
  turn.deal();
  await nextTurn();
  assert.deepEqual(happened, ["begin", "a", "commit"]);
});
