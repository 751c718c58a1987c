import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { newResult, newSample, scratchFolder } from "./store.fixture.ts";
import { openStore, type Store, type StoreOptions } from "./store.ts";
import { downgrade } from "./store-tests.fixture.ts";

const folder = scratchFolder();
let files = 0;

async function newStore(options: StoreOptions = {}, path = join(folder, `${files++}.sqlite`)) {
  const clock = { seconds: 1000 };
  const now = () => clock.seconds * 1000;
  const store = openStore(path, { leaseSeconds: 10, leaseGraceSeconds: 5, maxAttempts: 2, now, ...options });
  await store.beginLineage(() => true);
  store.addSamples([newSample("a")]);
  return { store, clock, path };
}

const take = (store: Store, actor = "actor-0") => {
  const lease = store.leases.takeAll([actor])[0];
  assert.ok(lease, "an execution is queued");
  return lease;
};
/** Returns the state of the execution: queued, leased, lost, finished. */
const stateOf = (store: Store) => store.samples(["a"])[0]!.state;

describe("disrupted attempts", () => {
  test("do not count towards maxAttempts, as lost attempts do", async () => {
    const { store } = await newStore({ maxAttempts: 2 });
    const disrupt = () => store.leases.fail("actor-0", take(store), "evicted", { disrupted: true });
    for (let times = 0; times < 20; times++) disrupt();
    store.leases.fail("actor-0", take(store), "its sandbox ended");
    disrupt();
    assert.equal(stateOf(store), "queued", "one of 22 attempts counts");
    store.leases.fail("actor-0", take(store), "its sandbox ended");
    assert.equal(stateOf(store), "lost");
    assert.equal(store.leases.disruptions(), 21);
    assert.equal(store.counts().lost, 1);
  });

  test("end at maxDisruptions, so a program that ends its node does not run for ever", async () => {
    const { store } = await newStore({ maxDisruptions: 3 });
    for (let times = 0; times < 3; times++) {
      assert.equal(stateOf(store), "queued");
      store.leases.fail("actor-0", take(store), "evicted", { disrupted: true });
    }
    assert.equal(stateOf(store), "lost");
  });

  const WITHOUT_A_WORD: [string, (store: Store, clock: { seconds: number }) => void][] = [
    [
      "its lease expires",
      (store, clock) => {
        clock.seconds += 11;
        assert.equal(store.leases.expire(), 1);
      },
    ],
    ["it comes back without the attempt", (store) => void store.leases.reconcile("actor-0", [])],
  ];
  for (const [name, lose] of WITHOUT_A_WORD) {
    test(`are the attempts of an actor that was taken away before ${name}`, async () => {
      const { store, clock } = await newStore({ maxAttempts: 1 });
      take(store);
      store.leases.disrupted("actor-0");
      assert.equal(stateOf(store), "leased", "its result still counts");
      lose(store, clock);
      assert.equal(stateOf(store), "queued");
      assert.equal(store.leases.disruptions(), 1);
    });

    test(`are found also if the actor's end is known only after ${name}`, async () => {
      const { store, clock } = await newStore({ maxAttempts: 1 });
      let queued = 0;
      take(store);
      lose(store, clock);
      assert.equal(stateOf(store), "lost");
      store.events.on("queued", () => queued++);
      store.leases.disrupted("actor-1");
      assert.equal(stateOf(store), "lost", "another actor's end says nothing");
      store.leases.disrupted("actor-0");
      store.leases.disrupted("actor-0");
      assert.deepEqual([stateOf(store), queued, store.leases.disruptions()], ["queued", 1, 1]);
    });
  }

  test("do not include attempts that were lost for another reason before the actor was taken away", async () => {
    const { store } = await newStore({ maxAttempts: 1 });
    store.leases.fail("actor-0", take(store), "its sandbox ended", { sandboxBroke: true });
    store.leases.disrupted("actor-0");
    assert.equal(stateOf(store), "lost");
  });

  test("include all running attempts of a suspended run, whose results still count if they come in time", async () => {
    const { store } = await newStore({ maxAttempts: 1 });
    const first = take(store);
    const revoked: string[] = [];
    store.events.on("revoked", (attempts, reason) => revoked.push(`${attempts[0]!.actor}: ${reason}`));
    store.leases.disruptAll("the run is suspended");
    assert.deepEqual(revoked, ["actor-0: the run is suspended"], "its actor is free to go");
    assert.deepEqual([stateOf(store), store.leases.disruptions()], ["queued", 1]);
    assert.equal(store.leases.accept("actor-0", first, newResult()), "accepted");
    assert.equal(stateOf(store), "finished");
  });

  test("do not include an attempt whose actor goes on after all", async () => {
    const { store } = await newStore();
    const lease = take(store);
    store.leases.disruptAll("the run is suspended");
    assert.deepEqual(store.leases.extend("actor-0", [lease]), []);
    assert.deepEqual([stateOf(store), store.leases.disruptions()], ["leased", 0]);
  });

  test("survive a restart, also in a store of the version before", async () => {
    const { store, path } = await newStore({ maxAttempts: 1 });
    store.leases.fail("actor-0", take(store), "evicted", { disrupted: true });
    store.close();
    const again = openStore(path, { maxAttempts: 1 });
    assert.equal(again.leases.disruptions(), 1);
    again.close();
    downgrade(path, 3);
    const reader = openStore(path, { readOnly: true });
    assert.equal(reader.allSamples()[0]!.state, "queued");
    reader.close();
    const upgraded = openStore(path, { maxAttempts: 3 });
    upgraded.leases.fail("actor-0", take(upgraded), "evicted", { disrupted: true });
    assert.equal(upgraded.leases.disruptions(), 1);
  });
});
