/** Tests who may call, one execution, and who gets which lease. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { status as code } from "@grpc/grpc-js";
import { messages, PROTOCOL_VERSION } from "../../proto/service.ts";
import { newSample } from "../store/store.fixture.ts";
import { leased, newActor, newLearner, plain, until } from "./learners.fixture.ts";
import { actorTls, LIMITS, startLearner, strangersTls, TestActor, tls, within } from "./server.fixture.ts";
import { whatBlocks } from "./waiting.ts";

describe("who may call", { concurrency: 6 }, () => {
  const cases: [string, (address: string) => TestActor, number][] = [
    ["no certificate", (address) => new TestActor(address, "a", null), code.UNAVAILABLE],
    ["a certificate of another run", (address) => new TestActor(address, "a", strangersTls), code.UNAVAILABLE],
    ["the controller's certificate", (address) => new TestActor(address, "a", tls.controller), code.PERMISSION_DENIED],
    ["the learner's own certificate", (address) => new TestActor(address, "a", tls.learner), code.PERMISSION_DENIED],
  ];
  for (const [name, connect, expected] of cases) {
    test(`ActorProtocol.Work refuses ${name}`, async () => {
      const { address, store } = await newLearner();
      store.addSamples([newSample("a")]);
      const actor = connect(address);
      actor.send({ hello: { protocolVersion: PROTOCOL_VERSION, actor: "a", slots: 1 } });
      assert.equal((await within(actor.status, "a refusal")).code, expected);
      assert.equal(store.counts().queued, 1);
      actor.vanish();
    });
  }
});

test("a Hello with the name of another actor is refused, and that actor keeps its leases", async () => {
  const { learner, actor, lease, store } = await leased();
  actor.beat(() => [lease.attempt]);
  const thief = new TestActor(learner.address, "actor-0", actorTls("actor-1"));
  thief.send({ hello: { protocolVersion: PROTOCOL_VERSION, actor: "actor-0", isolationLevel: "none", slots: 1 } });
  const { code: refused, details } = await within(thief.status, "a refusal");
  assert.equal(refused, code.PERMISSION_DENIED);
  assert.match(details, /certificate is of actor-1 and Hello says actor-0: .*certificate of its own name/);
  actor.handIn(lease.attempt);
  assert.equal((await actor.next("ack")).reason, "accepted");
  assert.equal(store.samples(["a"])[0].attempts, 1);
});

describe("one execution", { concurrency: 6 }, () => {
  test("an execution goes from its lease to its result and the acknowledgement", async () => {
    const { actor, lease, store } = await leased();
    assert.match(lease.markerNonce ?? "", /^[0-9a-f]{32}$/);
    assert.equal(Buffer.from(lease.program!).toString(), `print("${lease.markerNonce}:loaded data")\nprint(1)\n`);
    assert.deepEqual({ ...lease.limits }, LIMITS);
    assert.equal(lease.seed, 7);
    assert.equal(lease.task, "diamonds");
    const submission = Buffer.from("id,price\n1,2\n");
    actor.handIn(lease.attempt, {
      submission,
      header: {
        markers: [
          { name: "loaded data", value: "0.5", atSeconds: 0.001 },
          { name: "loaded data", atSeconds: 0.2 }, // repeated
          { name: "defined model", atSeconds: 0.2 }, // not inserted
        ],
        forgedMarkers: 2,
        imitatedMarkers: 1,
        terminalOutput: Buffer.concat([Buffer.from("ok "), Buffer.from([0xff, 0x00])]),
      },
    });
    const ack = await actor.next("ack");
    assert.deepEqual(plain(ack.attempt!), plain(lease.attempt));
    assert.equal(ack.accepted, true);
    const [sample] = store.samples(["a"]);
    assert.equal(sample.state, "finished");
    assert.deepEqual(sample.result?.markers, [{ name: "loaded data", value: "0.5", atSeconds: 0.001 }]);
    assert.equal(sample.result?.forgedMarkers, 4);
    assert.equal(sample.result?.imitatedMarkers, 1);
    assert.equal(sample.result?.terminalOutput, "ok \ufffd\u0000");
    assert.deepEqual(store.submission("a"), submission);
  });

  test("the learner's write and the lease of the sample that it queues share one commit, and its fault is thrown", async (t) => {
    const { store, server, address } = await newLearner();
    const actor = new TestActor(address);
    await actor.hello({ slots: 1 });
    actor.ready(1);
    actor.heartbeat([], { busySeconds: 3 }); // then the learner knows about the slot
    await until(() => server.actors().some(({ busySeconds }) => busySeconds === 3), "the actor");
    const together = t.mock.method(store, "together");
    let queued = 0;
    store.events.on("queued", () => queued++);
    await server.write(() => {
      store.addSamples([newSample("a")]);
      assert.equal(queued, 0, "it is not on disk yet");
    });
    assert.deepEqual([store.counts().running, together.mock.callCount(), queued], [1, 1, 1]);
    assert.equal((await actor.nextLease()).attempt.execution, "a");
    await assert.rejects(
      server.write(() => store.addSamples([newSample("a")])),
      { code: "conflict" },
    );
  });

  test("two submissions of many chunks can arrive at the same time", async () => {
    const { store, server, address } = await newLearner();
    store.addSamples([newSample("a"), newSample("b")]);
    const actor = new TestActor(address);
    await actor.hello({ slots: 2 });
    actor.ready(2);
    const leases = [await actor.nextLease(), await actor.nextLease()];
    const texts = leases.map(() => randomBytes(2 ** 20));
    leases.forEach((lease, index) => {
      actor.handIn(lease.attempt, { submission: texts[index] });
    });
    assert.equal(await within(server.waitForFinished(2), "both results"), 2);
    assert.deepEqual(store.submission("a"), texts[0]);
    assert.deepEqual(store.submission("b"), texts[1]);
  });

  test("a repeated result is acknowledged and dropped", async () => {
    const { actor, lease, store } = await leased();
    actor.handIn(lease.attempt, { header: { detail: "first" } });
    assert.equal((await actor.next("ack")).reason, "accepted");
    actor.handIn(lease.attempt, { header: { detail: "second" }, submission: Buffer.from("x") });
    const ack = await actor.next("ack");
    assert.deepEqual([ack.accepted, ack.reason], [false, "duplicate"]);
    assert.equal(store.samples(["a"])[0].result?.detail, "first");
    assert.equal(store.submission("a"), undefined);
  });

  test("an attempt that is lost without the program's fault is repeated with a new nonce", async () => {
    const { actor, lease, store } = await leased();
    actor.handIn(lease.attempt, { header: { outcome: messages.Outcome.LOST, detail: "sandbox is gone" } });
    assert.equal((await actor.next("ack")).reason, "accepted");
    actor.ready(1);
    const again = await actor.nextLease();
    assert.deepEqual([again.attempt.execution, again.attempt.number], ["a", 2]);
    assert.notEqual(again.markerNonce, lease.markerNonce);
    assert.equal(store.counts().retried, 1);
  });

  test("a result for another actor's attempt is refused", async () => {
    const { learner, lease, store } = await leased();
    const other = await newActor(learner, "actor-1");
    other.handIn(lease.attempt);
    assert.equal((await other.next("ack")).reason, "unknown");
    assert.equal(store.counts().running, 1);
  });
});

describe("the dealing of leases", { concurrency: 6 }, () => {
  test("an actor gets as many leases as it has free slots, the oldest first", async () => {
    const learner = await newLearner();
    const actor = new TestActor(learner.address);
    await actor.hello({ slots: 2 });
    actor.ready(256);
    learner.store.addSamples(["a", "b", "c", "d"].map((id) => newSample(id)));
    const leases = [await actor.nextLease(), await actor.nextLease()];
    assert.deepEqual(
      leases.map(({ attempt }) => attempt.execution),
      ["a", "b"],
    );
    await sleep(50);
    assert.ok(!actor.has("lease"));
    actor.handIn(leases[0].attempt);
    await actor.next("ack");
    actor.ready(1);
    assert.equal((await actor.nextLease()).attempt.execution, "c");
    assert.equal(learner.store.counts().queued, 1);
  });

  test("a slot is free once its result is accepted, although the actor offers it earlier", async () => {
    const { actor, lease, store } = await leased({ tickSeconds: 3600 });
    store.addSamples([newSample("b")]);
    actor.handIn(lease.attempt, { submission: randomBytes(2 ** 20) });
    actor.ready(1);
    assert.equal((await actor.nextLease()).attempt.execution, "b");
  });

  test("two actors share the queue", async () => {
    const learner = await newLearner();
    const actors = [await newActor(learner, "actor-0", 2), await newActor(learner, "actor-1", 2)];
    for (const actor of actors) actor.heartbeat([], { busySeconds: 1 });
    await until(() => learner.server.actors().every(({ busySeconds }) => busySeconds === 1), "both are ready");
    learner.store.addSamples(["a", "b"].map((id) => newSample(id)));
    assert.deepEqual(await Promise.all(actors.map(async (actor) => (await actor.nextLease()).attempt.number)), [1, 1]);
  });

  test("discarded executions are revoked where they run", async () => {
    const { actor, lease, store } = await leased();
    store.discardUnfinished("the batch is complete");
    const revoke = await actor.next("revoke");
    assert.deepEqual([revoke.attempt?.execution, revoke.reason], ["a", "the batch is complete"]);
    actor.handIn(lease.attempt);
    assert.equal((await actor.next("ack")).reason, "revoked");
  });

  test("draining actors get no leases and hand in their programs; later actors get Drain as well", async () => {
    const { actor, lease, learner, store } = await leased();
    learner.server.drain("the run is suspended");
    assert.equal((await actor.next("drain")).reason, "the run is suspended");
    store.addSamples([newSample("b")]);
    actor.ready(1);
    const late = await newActor(learner, "actor-1");
    assert.equal((await late.next("drain")).reason, "the run is suspended");
    actor.handIn(lease.attempt);
    assert.equal((await actor.next("ack")).reason, "accepted");
    assert.ok(!actor.has("lease") && !late.has("lease"));
    actor.send({ drained: {} });
    assert.equal((await within(actor.status, "the end of the stream")).code, code.OK);
    assert.deepEqual(whatBlocks(learner.store.totals(), learner.server.actors()).reason, "Draining");
  });

  test("a single actor can be drained", async () => {
    const learner = await newLearner();
    const actors = [await newActor(learner, "actor-0"), await newActor(learner, "actor-1")];
    learner.server.drain("fewer actors", "actor-0");
    await actors[0].next("drain");
    learner.store.addSamples([newSample("a")]);
    await actors[1].nextLease();
    assert.ok(!actors[1].has("drain"));
  });
});

describe("a sandbox that breaks under a program", { concurrency: 6 }, () => {
  const broke = (detail: string) => ({
    header: { outcome: messages.Outcome.LOST, detail, sandboxBroke: true, durationSeconds: 0.5 },
  });
  const gone = { header: { outcome: messages.Outcome.LOST, detail: "no slot was free" } };

  test("a program that breaks its sandbox three times in a row has failed", async () => {
    const { actor, lease, store } = await leased();
    for (let { attempt } = lease; ; { attempt } = await actor.nextLease()) {
      actor.handIn(attempt, broke("its process ended"));
      assert.equal((await actor.next("ack")).reason, "accepted");
      if (attempt.number === 3) break;
      assert.equal(store.counts().queued, 1, "it is tried again");
      actor.ready(1);
    }
    const [sample] = store.samples(["a"]);
    assert.deepEqual([sample.state, sample.result?.outcome], ["finished", "failed"]);
    assert.match(sample.result!.detail, /the sandbox broke under the program, 3 times in a row: its process ended/);
  });

  test("an execution that loses two sandboxes and once a slot is lost", async () => {
    const { actor, lease, store } = await leased();
    for (let { attempt } = lease; ; { attempt } = await actor.nextLease()) {
      actor.handIn(attempt, attempt.number === 2 ? gone : broke("its process ended"));
      await actor.next("ack");
      if (attempt.number === 3) break;
      actor.ready(1);
    }
    const [sample] = store.samples(["a"]);
    assert.deepEqual([sample.state, sample.result], ["lost", undefined]);
  });
});

test("the error of a port in use names the address", async () => {
  const { address } = await newLearner();
  await assert.rejects(startLearner({ address }), {
    name: "ServerError",
    code: "listen",
    message: new RegExp(address),
  });
});
