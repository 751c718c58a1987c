/** Tests broken streams, expired leases and restarts of the learner. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { status as code } from "@grpc/grpc-js";
import { newSample } from "../store/store.fixture.ts";
import { leased, newActor, newLearner, plain, until } from "./learners.fixture.ts";
import { LIMITS, startLearner, TestActor, within } from "./server.fixture.ts";

describe("streams that break", { concurrency: 6 }, () => {
  test("the actor keeps its running programs and hands them in on the next stream", async () => {
    const { actor, lease, store, learner } = await leased();
    actor.vanish();
    await until(() => !learner.server.actors()[0].connected, "the actor is seen as gone");
    assert.equal(store.counts().running, 1);
    const back = new TestActor(learner.address);
    const welcome = await back.hello({ holding: [lease.attempt] });
    assert.deepEqual(welcome.revoked, []);
    back.handIn(lease.attempt);
    assert.equal((await back.next("ack")).reason, "accepted");
    assert.equal(store.counts().retried, 0);
  });

  test("a lease that did not reach its actor is given out again", async () => {
    const { actor, learner, store } = await leased();
    actor.vanish();
    const back = await newActor(learner);
    const again = await back.nextLease();
    assert.equal(again.attempt.number, 2);
    assert.equal(store.counts().retried, 1);
  });

  test("a lease without heartbeats goes to another actor; the late actor's result is refused", async () => {
    const { actor, lease, store, learner } = await leased({ store: { leaseSeconds: 1 } });
    const other = (await newActor(learner, "actor-1")).beat();
    actor.vanish();
    const again = await other.nextLease();
    assert.deepEqual([again.attempt.execution, again.attempt.number], ["a", 2]);
    const back = new TestActor(learner.address);
    const welcome = await back.hello({ holding: [lease.attempt] });
    assert.deepEqual(welcome.revoked?.map(plain), [plain(lease.attempt)]);
    back.handIn(lease.attempt);
    assert.equal((await back.next("ack")).reason, "revoked");
    other.handIn(again.attempt, { header: { detail: "second" } });
    assert.equal((await other.next("ack")).reason, "accepted");
    assert.equal(store.samples(["a"])[0].result?.detail, "second");
  });

  test("heartbeats keep a lease longer than leaseSeconds; heartbeats for unknown attempts are revoked", async () => {
    const { actor, lease, store } = await leased({ store: { leaseSeconds: 1 } });
    actor.beat(() => [lease.attempt]);
    await sleep(1800);
    assert.equal(store.counts().running, 1);
    assert.equal(store.counts().retried, 0);
    actor.heartbeat([lease.attempt, { execution: "z", number: 1, fence: "99" }]);
    assert.equal((await actor.next("revoke")).attempt?.execution, "z");
    assert.ok(!actor.has("revoke"));
  });

  test("heartbeats cannot keep a lease past its end: it is lost, and the actor gets Revoke", async () => {
    const { actor, lease, store } = await leased({ store: { leaseSeconds: 1, longestSeconds: 1.5 } });
    actor.beat(() => [lease.attempt]);
    const { attempt, reason } = await actor.next("revoke");
    assert.equal(attempt?.fence, lease.attempt.fence);
    assert.match(reason ?? "", /no result within 1.5 s/);
    assert.equal(store.counts().running, 0);
  });

  test("durations, CPU times and markers are cut to the time since the lease", async () => {
    const { actor, lease, store } = await leased({ limitsOf: () => ({ ...LIMITS, processes: 2 }) });
    const markers = [{ name: "loaded data", atSeconds: 1e6 }];
    actor.handIn(lease.attempt, { header: { durationSeconds: 1.7e9, cpuSeconds: 1e10, markers } });
    assert.equal((await actor.next("ack")).reason, "accepted");
    const { durationSeconds, cpuSeconds, markers: seen } = store.samples(["a"])[0].result!;
    assert.ok(durationSeconds > 0 && durationSeconds < 15, String(durationSeconds));
    assert.equal(cpuSeconds, 2 * durationSeconds);
    assert.equal(seen[0].atSeconds, durationSeconds);
  });

  test("a silent actor's stream ends", async () => {
    const { actor } = await leased({ store: { leaseSeconds: 0.3 } });
    assert.equal((await within(actor.status, "the end of the stream")).code, code.DEADLINE_EXCEEDED);
  });

  test("a newer stream of the same actor replaces the older one", async () => {
    const { actor, lease, learner } = await leased();
    const newer = new TestActor(learner.address);
    await newer.hello({ holding: [lease.attempt] });
    assert.equal((await within(actor.status, "the end of the older stream")).code, code.ABORTED);
    newer.handIn(lease.attempt);
    assert.equal((await newer.next("ack")).reason, "accepted");
    assert.equal(learner.server.actors().length, 1);
  });

  test("a learner that restarts takes running programs and knows acknowledged and revoked attempts", async () => {
    const learner = await startLearner();
    const { store } = learner;
    store.addSamples([newSample("a"), newSample("b"), newSample("c", { purpose: "evaluation" })]);
    const actor = await newActor(learner, "actor-0", 3);
    const [a, b, c] = [await actor.nextLease(), await actor.nextLease(), await actor.nextLease()];
    actor.handIn(b.attempt);
    await actor.next("ack");
    store.discardUnfinished("not needed", "evaluation");
    assert.equal((await actor.next("revoke")).attempt?.execution, "c");
    await learner.stop();
    const ended = await within(actor.status, "the end of the stream");
    assert.deepEqual([ended.code, ended.details], [code.UNAVAILABLE, "the learner stops"]);

    const again = await newLearner({ path: learner.path, address: learner.address });
    assert.equal(again.store.lineage, 2);
    assert.equal(again.store.counts().running, 1);
    const back = new TestActor(again.address);
    const welcome = await back.hello({ slots: 3, holding: [a.attempt, b.attempt, c.attempt] });
    assert.equal(welcome.lineage, "2");
    assert.deepEqual(
      welcome.revoked?.map(({ execution }) => execution),
      ["c"],
    );
    back.handIn(a.attempt);
    assert.equal((await back.next("ack")).reason, "accepted");
    back.handIn(b.attempt);
    assert.equal((await back.next("ack")).reason, "duplicate");
    assert.deepEqual(
      again.store.nextBatch(9).map(({ id }) => id),
      ["a", "b"],
    );
  });

  test("attempts that no actor names within the grace period after a restart are queued again", async () => {
    const { learner, actor } = await leased();
    await learner.stop();
    actor.end();
    const again = await newLearner({ path: learner.path, store: { leaseGraceSeconds: 0.2 } });
    assert.equal(again.store.counts().running, 1);
    await until(() => again.store.counts().queued === 1, "the lease ended");
  });
});
