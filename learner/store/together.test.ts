/** Several calls in one commit, and leases for many actors at once. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Database } from "./database.ts";
import { newResult, newSample, scratchFolder } from "./store.fixture.ts";
import { openStore } from "./store.ts";
import type { AttemptKey } from "./types.ts";

const folder = scratchFolder();
const keyOnly = ({ execution, number, fence }: AttemptKey): AttemptKey => ({ execution, number, fence });

async function filled(name: string, count: number) {
  const store = openStore(join(folder, `${name}.sqlite`));
  await store.beginLineage(() => true);
  store.addSamples(Array.from({ length: count }, (_, index) => newSample(`s${index}`)));
  return store;
}

describe("leases for many actors", () => {
  test("are dealt in order, the oldest first, until the queue is empty", async () => {
    const store = await filled("many", 3);
    const leased = store.leases.takeAll(["a", "b", "a", "c"]);
    assert.deepEqual(
      leased.map(({ execution }) => execution),
      ["s0", "s1", "s2"],
    );
    assert.deepEqual(
      [store.leases.runningOf("a"), store.leases.runningOf("b"), store.leases.runningOf("c")],
      [2, 1, 0],
    );
    assert.equal(store.leases.attempts.hasQueued(), false);
    assert.deepEqual(store.leases.takeAll(["d"]), []);
    assert.equal(new Set(leased.map(({ nonce }) => nonce)).size, 3);
    store.close();
  });

  test("are counted for each actor through results, losses and returns", async () => {
    const store = await filled("count", 3);
    const [first, second] = store.leases.takeAll(["a", "a", "b"]);
    store.leases.accept("a", first!, newResult({}));
    assert.equal(store.leases.runningOf("a"), 1);
    store.leases.fail("a", second!, "gone");
    assert.equal(store.leases.runningOf("a"), 0);
    assert.equal(store.leases.runningOf("b"), 1);
    assert.deepEqual(store.leases.running("a"), []);
    assert.equal(store.leases.running("b").length, 1);
    store.close();
  });
});

describe("several writes in one transaction", () => {
  test("a write that throws changes nothing, the others are committed, and events follow the commit", async () => {
    const store = await filled("together", 3);
    const [a, b] = store.leases.takeAll(["x", "x"]);
    const seen: string[] = [];
    store.events.on("finished", (id) => {
      const reader = openStore(store.path, { readOnly: true });
      seen.push(`${id} ${reader.samples([id])[0]!.state}`);
      reader.close();
    });
    const faults = store.together([
      () => assert.equal(store.leases.accept("x", a!, newResult({})), "accepted"),
      () => {
        store.leases.accept("x", b!, newResult({}));
        throw new Error("after it was written");
      },
      () => store.addSamples([newSample("s3")]),
    ]);
    assert.deepEqual(
      faults.map((fault) => (fault as Error | undefined)?.message),
      [undefined, "after it was written", undefined],
    );
    assert.deepEqual(seen, [`${a!.execution} finished`]);
    assert.deepEqual(
      store.leases.running("x").map(keyOnly),
      [keyOnly(b!)],
      "the attempt of the undone write still runs",
    );
    assert.equal(store.leases.accept("x", b!, newResult({})), "accepted");
    assert.equal(store.leases.runningOf("x"), 0);
    assert.deepEqual(
      store.samples(["s0", "s1", "s3"]).map(({ state }) => state),
      ["finished", "finished", "queued"],
    );
    store.close();
  });

  test("a failed transaction undoes its changes in memory, the newest first", () => {
    const database = new Database(join(folder, "rollback.sqlite"));
    const undone: string[] = [];
    const change = (name: string) => database.onRollback(() => void undone.push(name));
    const failing = () =>
      database.write(() => {
        change("first");
        database.write(() => change("nested"));
        throw new Error("at its end");
      });
    assert.throws(failing, /at its end/);
    assert.deepEqual(undone, ["nested", "first"]);
    database.write(() => change("stays"));
    change("outside of a transaction");
    assert.throws(failing);
    assert.deepEqual(undone, ["nested", "first", "nested", "first"]);
    database.close();
  });

  test("the error of a listener is thrown to the caller after all other events", async () => {
    const store = await filled("listeners", 2);
    const [a, b] = store.leases.takeAll(["x", "x"]);
    const heard: string[] = [];
    store.events.on("finished", (id) => {
      heard.push(id);
      throw new Error(`of ${id}`);
    });
    const both = [a, b].map((attempt) => () => void store.leases.accept("x", attempt!, newResult({})));
    assert.throws(() => store.together(both), /of s0/);
    assert.deepEqual(heard, ["s0", "s1"]);
    assert.equal(store.totals().completed, 2);
    store.close();
  });
});
