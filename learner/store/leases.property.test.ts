/**
 * Random histories of the store against a small model of it: actors that come, work, vanish and come back with old
 * results, learners that restart and go back to any checkpoint. After every step the promises must hold.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { newResult, newSample, scratchFolder } from "./store.fixture.ts";
import { openStore, type Store } from "./store.ts";
import type { HeldAttempt, LeasedExecution } from "./types.ts";

const folder = scratchFolder();
let files = 0;

const LEASE = { leaseSeconds: 10, leaseGraceSeconds: 5, maxAttempts: 3 };
const ACTORS = ["actor-0", "actor-1", "actor-2"];

class World {
  path = join(folder, `${files++}.sqlite`);
  seconds = 0;
  store!: Store;
  /** Everything that was ever leased, with its actor; old ones are handed in, too. */
  leased: (LeasedExecution & HeldAttempt)[] = [];
  nonces = new Set<string>();
  fence = 0;
  /** Execution -> the result's text. Never changes once set. */
  accepted = new Map<string, string>();
  added = 0;
  /** Samples of each iteration of the chain that the weights have behind them. */
  chain: string[][] = [];
  /** How many iterations each checkpoint has. */
  checkpoints = new Set<number>();
  versions = new Set<string>();

  async start(isValid: (iteration: number) => boolean): Promise<void> {
    this.store?.close();
    this.store = openStore(this.path, { ...LEASE, now: () => this.seconds * 1000 });
    const { lineage, iteration } = await this.store.beginLineage((row) => isValid(row.iteration));
    const best = Math.max(0, ...[...this.checkpoints].filter(isValid));
    assert.equal(iteration, best, "the newest valid checkpoint is used");
    this.chain.length = iteration;
    for (const known of this.checkpoints) if (known > iteration) this.checkpoints.delete(known);
    assert.ok(!this.versions.has(String(lineage)), "a lineage is never used twice");
    this.versions.add(String(lineage));
  }

  check(): void {
    const { store } = this;
    const counts = store.counts();
    const { queued, running, completed, lost, discarded } = counts;
    assert.equal(queued + running + completed + lost + discarded, this.added, "no execution vanishes");
    assert.equal(completed, this.accepted.size, "exactly the accepted executions are finished");
    assert.equal(store.leases.running().length, running, "every lease has a deadline");
    assert.equal(
      counts.consumed,
      new Set(this.chain.flat()).size,
      "the weights consumed the samples that their chain trained on",
    );
    assert.equal(counts.consumed, this.chain.flat().length, "no sample is in two batches");
    const free = store.nextBatch(1000);
    assert.equal(free.length + counts.consumed, completed, "samples that were not consumed can be trained on");
    for (const sample of free)
      assert.equal(sample.result?.detail, this.accepted.get(sample.id), "the first result stands");
    assert.deepEqual(
      free.map(({ sequence }) => sequence),
      free.map(({ sequence }) => sequence).toSorted((a, b) => a - b),
      "oldest first",
    );
    assert.deepEqual(
      store.iterationRows().map(({ iteration }) => store.samplesOf(iteration).map(({ id }) => id)),
      this.chain,
    );
  }
}

type Step = (world: World) => void | Promise<void>;

const actor = fc.constantFrom(...ACTORS);
const pick = fc.nat({ max: 1000 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.integer({ min: 1, max: 4 }).map((n) => (world: World) => {
      world.store.addSamples(Array.from({ length: n }, () => newSample(`s${world.added++}`)));
    }),
  },
  {
    weight: 6,
    arbitrary: actor.map((name) => (world: World) => {
      const before = world.store.counts().queued;
      const lease = world.store.leases.takeAll([name])[0];
      assert.equal(lease !== undefined, before > 0);
      if (lease === undefined) return;
      assert.ok(!world.accepted.has(lease.execution), "an accepted execution is never leased again");
      assert.ok(!world.nonces.has(lease.nonce));
      assert.ok(Number(lease.fence) > world.fence);
      assert.ok(lease.number <= LEASE.maxAttempts + world.store.leases.disruptions(), "only disruptions are free");
      world.nonces.add(lease.nonce);
      world.fence = Number(lease.fence);
      world.leased.push({ ...lease, actor: name });
    }),
  },
  {
    weight: 6,
    // Any attempt that ever was, sometimes by another actor: lies and late results included.
    arbitrary: fc.tuple(pick, fc.boolean(), actor).map(([index, honest, other]) => (world: World) => {
      if (world.leased.length === 0) return;
      const attempt = world.leased[index % world.leased.length];
      const from = honest ? attempt.actor : other;
      const detail = `${attempt.execution}/${attempt.number}/${from}/${world.seconds}/${index}`;
      const known = world.accepted.has(attempt.execution);
      const newest = world.leased.findLast(({ execution }) => execution === attempt.execution) === attempt;
      const verdict = world.store.leases.accept(from, attempt, newResult({ detail }));
      if (from !== attempt.actor) assert.equal(verdict, "unknown");
      else if (known) assert.equal(verdict, "duplicate");
      else if (!newest) assert.equal(verdict, "revoked");
      if (verdict === "accepted") world.accepted.set(attempt.execution, detail);
    }),
  },
  {
    weight: 3,
    // A heartbeat with any attempts that the actor ever had, also with expired leases.
    arbitrary: fc.tuple(actor, fc.nat({ max: 2 ** 16 })).map(([name, bits]) => (world: World) => {
      const mine = world.leased.filter((attempt, index) => attempt.actor === name && (bits >> (index % 16)) & 1);
      const counts = mine.map((attempt) => world.store.leases.attempts.judge(name, attempt) === "accepted");
      const stale = world.store.leases.extend(name, mine).map(({ fence }) => fence);
      assert.deepEqual(
        mine.map(({ fence }) => !stale.includes(fence)),
        counts,
      );
    }),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(actor, fc.array(pick, { maxLength: 3 })).map(([name, indices]) => (world: World) => {
      const holding =
        world.leased.length === 0 ? [] : indices.map((index) => world.leased[index % world.leased.length]);
      const stale = world.store.leases.reconcile(name, holding);
      for (const attempt of holding) {
        const runs = world.store.leases.running(name).some(({ fence }) => fence === attempt.fence);
        const revoked = stale.some(({ fence }) => fence === attempt.fence);
        const handedIn = world.accepted.has(attempt.execution) && attempt.actor === name;
        assert.ok(runs !== revoked || (handedIn && !runs), "a held attempt runs on, or is revoked, or was accepted");
      }
    }),
  },
  {
    weight: 2,
    arbitrary: pick.map((index) => (world: World) => {
      const running = world.store.leases.running();
      if (running.length === 0) return;
      const attempt = running[index % running.length];
      assert.equal(world.store.leases.fail(attempt.actor, attempt, "node gone"), "accepted");
    }),
  },
  {
    weight: 2,
    // An actor is taken away: its own word, the controller's before or after the fact, or a suspension of all.
    arbitrary: fc.tuple(actor, pick, fc.constantFrom("says", "reported", "suspended")).map(([name, index, how]) => {
      return (world: World) => {
        const { leases } = world.store;
        const { lost } = world.store.counts();
        const running = leases.running(name);
        if (how === "reported") leases.disrupted(name);
        else if (how === "suspended") leases.disruptAll("suspended");
        else if (running.length > 0)
          leases.fail(name, running[index % running.length], "asked to stop", { disrupted: true });
        assert.ok(world.store.counts().lost <= lost, "it gives up no execution");
      };
    }),
  },
  {
    weight: 2,
    // The cause of a lost attempt becomes known, in any state of its execution.
    arbitrary: fc.tuple(pick, fc.boolean(), actor).map(([index, honest, other]) => (world: World) => {
      if (world.leased.length === 0) return;
      const attempt = world.leased[index % world.leased.length];
      const from = honest ? attempt.actor : other;
      const detail = `settled ${attempt.execution}/${attempt.number}/${world.seconds}/${index}`;
      const known = world.accepted.has(attempt.execution);
      const runs = world.store.leases.running().some(({ fence }) => fence === attempt.fence);
      const settled = world.store.leases.settle(from, attempt, newResult({ detail, outcome: "outOfMemory" }));
      if (known || runs || from !== attempt.actor) assert.ok(!settled);
      if (!settled) return;
      world.accepted.set(attempt.execution, detail);
      assert.ok(!world.store.leases.running().some(({ execution }) => execution === attempt.execution));
    }),
  },
  {
    weight: 4,
    arbitrary: fc.integer({ min: 1, max: 15 }).map((seconds) => (world: World) => {
      world.seconds += seconds;
      world.store.leases.expire();
    }),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(fc.integer({ min: 1, max: 4 }), fc.boolean()).map(([n, save]) => (world: World) => {
      const sampleIds = world.store.nextBatch(n).map(({ id }) => id);
      const iteration = world.chain.length + 1;
      world.store.commitIteration({ iteration, sampleIds, metrics: {} });
      if (save) world.store.commitCheckpoint({ iteration, digest: `d${iteration}`, path: `c${iteration}` });
      world.chain.push(sampleIds);
      if (save) world.checkpoints.add(iteration);
    }),
  },
  {
    weight: 1,
    // Each checkpoint is damaged or not, by its bit.
    arbitrary: fc
      .nat({ max: 255 })
      .map((bits) => (world: World) => world.start((iteration) => ((bits >> (iteration % 8)) & 1) === 1)),
  },
  {
    weight: 1,
    arbitrary: fc.constant((world: World) => {
      world.store.discardUnfinished("batch complete");
      assert.equal(world.store.leases.running().length, 0);
    }),
  },
);

test("the store keeps its promises in every history", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
      const world = new World();
      await world.start(() => true);
      for (const run of steps) {
        await run(world);
        world.check();
      }
      world.store.close();
    }),
    { numRuns: 150, interruptAfterTimeLimit: 8000 },
  );
});
