import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { deflateSync } from "node:zlib";
import { status as code } from "@grpc/grpc-js";
import { messages, PROTOCOL_VERSION } from "../../proto/service.ts";
import { newSample } from "../store/fixtures.ts";
import {
  type Attempt,
  actorTls,
  type Corruption,
  closeActors,
  type Learner,
  LIMITS,
  startLearner,
  strangersTls,
  TestActor,
  tls,
  within,
} from "./fixtures.ts";

const learners: Learner[] = [];
after(async () => {
  closeActors();
  await Promise.all(learners.map((learner) => learner.stop()));
});

async function newLearner(options: Parameters<typeof startLearner>[0] = {}): Promise<Learner> {
  const learner = await startLearner(options);
  learners.push(learner);
  return learner;
}

async function newActor(learner: Learner, name = "actor-0", slots = 1): Promise<TestActor> {
  const actor = new TestActor(learner.address, name);
  await actor.hello({ slots });
  actor.ready(slots);
  return actor;
}

/** One actor that was leased sample `a`. */
async function leased(options: Parameters<typeof startLearner>[0] = {}) {
  const learner = await newLearner(options);
  learner.store.addSamples([newSample("a")]);
  const actor = await newActor(learner);
  return { ...learner, learner, actor, lease: await actor.nextLease() };
}

const plain = ({ execution, number, fence }: Attempt) => ({ execution, number, fence });

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let waited = 0; !condition(); waited += 10) {
    if (waited > 15000) throw new Error(`waited 15 s until ${what}`);
    await sleep(10);
  }
}

describe("who may call", { concurrency: 6 }, () => {
  const cases: [string, (address: string) => TestActor, number][] = [
    ["no certificate", (address) => new TestActor(address, "a", null), code.UNAVAILABLE],
    ["a certificate of another run", (address) => new TestActor(address, "a", strangersTls), code.UNAVAILABLE],
    ["the controller's certificate", (address) => new TestActor(address, "a", tls.controller), code.PERMISSION_DENIED],
    ["the learner's own certificate", (address) => new TestActor(address, "a", tls.learner), code.UNAVAILABLE],
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

test("an actor says hello under the name in its certificate alone: another's leases are not touched", async () => {
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
  test("lease, result, acknowledgement", async () => {
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
          { name: "loaded data", value: "0.5", atSeconds: 0.1 },
          { name: "loaded data", atSeconds: 0.2 }, // twice
          { name: "defined model", atSeconds: 0.2 }, // was not inserted
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
    assert.deepEqual(sample.result?.markers, [{ name: "loaded data", value: "0.5", atSeconds: 0.1 }]);
    assert.equal(sample.result?.forgedMarkers, 4);
    assert.equal(sample.result?.imitatedMarkers, 1);
    assert.equal(sample.result?.terminalOutput, "ok \ufffd\u0000");
    assert.deepEqual(store.submission("a"), submission);
  });

  test("a submission of many chunks, two at the same time", async () => {
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

  test("a repeat is acknowledged and dropped", async () => {
    const { actor, lease, store } = await leased();
    actor.handIn(lease.attempt, { header: { detail: "first" } });
    assert.equal((await actor.next("ack")).reason, "accepted");
    actor.handIn(lease.attempt, { header: { detail: "second" }, submission: Buffer.from("x") });
    const ack = await actor.next("ack");
    assert.deepEqual([ack.accepted, ack.reason], [false, "duplicate"]);
    assert.equal(store.samples(["a"])[0].result?.detail, "first");
    assert.equal(store.submission("a"), undefined);
  });

  test("what the actor lost through no fault of the program is tried again, with a new nonce", async () => {
    const { actor, lease, store } = await leased();
    actor.handIn(lease.attempt, { header: { outcome: messages.Outcome.LOST, detail: "sandbox is gone" } });
    assert.equal((await actor.next("ack")).reason, "accepted");
    actor.ready(1);
    const again = await actor.nextLease();
    assert.deepEqual([again.attempt.execution, again.attempt.number], ["a", 2]);
    assert.notEqual(again.markerNonce, lease.markerNonce);
    assert.equal(store.counts().retried, 1);
  });

  test("somebody else's attempt is refused", async () => {
    const { learner, lease, store } = await leased();
    const other = await newActor(learner, "actor-1");
    other.handIn(lease.attempt);
    assert.equal((await other.next("ack")).reason, "unknown");
    assert.equal(store.counts().running, 1);
  });
});

describe("submissions that are not what they say", () => {
  const bomb = deflateSync(Buffer.alloc(2 ** 26));
  const damaged: Record<string, Corruption> = {
    "another digest": ({ info }) => (info.sha256 = "0".repeat(64)),
    "another text": ({ chunks }) => (chunks[0] = deflateSync("id,price\n9,9\n")),
    "no zlib": ({ chunks }) => (chunks[0] = Buffer.alloc(chunks[0].length)),
    "cut off": ({ chunks }) => (chunks[0] = chunks[0].subarray(0, -1)),
    "shorter than announced": ({ info }) => (info.bytes = 99),
  };
  for (const [name, corrupt] of Object.entries(damaged)) {
    test(`${name}: asked for again, then the attempt is lost`, async () => {
      const { actor, lease, store } = await leased();
      const submission = Buffer.from("id,price\n1,2\n");
      for (const reason of ["digest", "digest", "revoked"]) {
        actor.handIn(lease.attempt, { submission, corrupt });
        const ack = await actor.next("ack");
        assert.deepEqual([ack.accepted, ack.reason], [false, reason]);
      }
      actor.ready(1);
      const again = await actor.nextLease();
      assert.equal(again.attempt.number, 2);
      actor.handIn(again.attempt, { submission });
      assert.equal((await actor.next("ack")).reason, "accepted");
      assert.equal(store.counts().completed, 1);
    });
  }

  const broken: Record<string, [Corruption, RegExp]> = {
    "a zip bomb": [
      (wire) => {
        wire.info.bytes = LIMITS.submissionBytes;
        wire.info.compressedBytes = bomb.length;
        wire.chunks.splice(0, 9, bomb);
      },
      /digest/,
    ],
    "larger than the task allows": [({ info }) => (info.bytes = LIMITS.submissionBytes + 1), /submissionBytes allows/],
    "more compressed than plain": [({ info }) => (info.compressedBytes = 2 ** 30), /compressed/],
    "no digest": [({ info }) => (info.sha256 = ""), /SHA-256/],
    "a million chunks": [({ info }) => (info.chunks = 1e6), /chunks/],
    "no chunk": [({ info }) => (info.chunks = 0), /chunks/],
    "chunks out of order": [(wire) => (wire.firstIndex = 1), /chunk 1 .* came when 0 was due/],
    "more than announced": [({ chunks }) => (chunks[0] = randomBytes(2000)), /longer than announced/],
  };
  for (const [name, [corrupt, message]] of Object.entries(broken)) {
    test(`${name}: ends that stream only, and the attempt`, async () => {
      const { actor, lease, store, learner } = await leased();
      const other = await newActor(learner, "actor-1");
      const before = process.memoryUsage().rss;
      actor.handIn(lease.attempt, { submission: Buffer.from("id,price\n1,2\n"), corrupt });
      if (name === "a zip bomb") {
        assert.match((await actor.next("ack")).reason ?? "", message);
        assert.ok(process.memoryUsage().rss - before < 2 ** 25, "inflating stopped at the announced size");
        return;
      }
      const ended = await within(actor.status, "the end of the stream");
      assert.equal(ended.code, code.INVALID_ARGUMENT);
      assert.match(ended.details, message);
      const again = await other.nextLease();
      assert.deepEqual([again.attempt.execution, again.attempt.number], ["a", 2]);
      other.handIn(again.attempt);
      assert.equal((await other.next("ack")).reason, "accepted");
      assert.equal(store.counts().completed, 1);
    });
  }
});

describe("messages that make no sense end their stream with a status that says why", { concurrency: 6 }, () => {
  const first: Record<string, [object, RegExp]> = {
    "no hello": [{ ready: { freeSlots: 1 } }, /not Hello/],
    "another protocol version": [{ hello: { protocolVersion: 99, actor: "a", slots: 1 } }, /protocol 99/],
    "no name": [{ hello: { protocolVersion: 1, slots: 1 } }, /actor is ''/],
    "a name with control characters": [
      { hello: { protocolVersion: 1, actor: "a\n\u001b[31m", slots: 1 } },
      /letters, digits/,
    ],
    "no slots": [{ hello: { protocolVersion: 1, actor: "a" } }, /slots is 0/],
    "too many slots": [{ hello: { protocolVersion: 1, actor: "a", slots: 1e6 } }, /slots is 1000000/],
    "holding nonsense": [{ hello: { protocolVersion: 1, actor: "a", slots: 1, holding: [{}] } }, /an attempt without/],
    "holding too much": [
      {
        hello: {
          protocolVersion: 1,
          actor: "a",
          slots: 1,
          holding: Array.from({ length: 200 }, (_, n) => ({ execution: "a", number: 1, fence: String(n + 1) })),
        },
      },
      /200 attempts/,
    ],
    "an empty message": [{}, /not Hello/],
  };
  for (const [name, [message, details]] of Object.entries(first)) {
    test(`at first: ${name}`, async () => {
      const { address } = await newLearner();
      const actor = new TestActor(address, "a");
      actor.send(message);
      const ended = await within(actor.status, "the end of the stream");
      assert.equal(ended.code, code.INVALID_ARGUMENT);
      assert.match(ended.details, details);
    });
  }

  const sandboxes: Record<string, [Record<string, string>, RegExp | undefined]> = {
    "that lacks what was promised": [
      { numpy: "2", pip: "1" },
      /its sandbox lacks torch, scikit_learn, which spec\.actors\.packages promises: .*sandboxImage/,
    ],
    "that has it, by normalized names": [{ numpy: "2", torch: "2", "scikit-learn": "1" }, undefined],
    "of an actor of 0.1, which says nothing": [{}, undefined],
  };
  for (const [name, [packages, details]] of Object.entries(sandboxes))
    test(`at first: a sandbox ${name}`, async () => {
      const { address } = await newLearner({ packages: ["numpy", "torch", "scikit_learn"] });
      const actor = new TestActor(address, "a");
      actor.send({ hello: { protocolVersion: 1, actor: "a", slots: 1, packages } });
      if (!details) return void (await actor.next("welcome"));
      const ended = await within(actor.status, "the end of the stream");
      assert.equal(ended.code, code.FAILED_PRECONDITION);
      assert.match(ended.details, details);
    });

  const later: Record<string, [(attempt: Attempt) => object, RegExp]> = {
    "a second hello": [() => ({ hello: { protocolVersion: 1, actor: "actor-0", slots: 1 } }), /second Hello/],
    "an empty message": [() => ({}), /kind that this learner does not know/],
    "a result of nothing": [() => ({ result: { outcome: 1 } }), /an attempt without/],
    "an outcome that does not exist": [(attempt) => ({ result: { attempt, outcome: 42 } }), /outcome 42/],
    "no outcome": [(attempt) => ({ result: { attempt } }), /outcome 0/],
    "a negative duration": [
      (attempt) => ({ result: { attempt, outcome: 1, durationSeconds: -1 } }),
      /duration_seconds is -1/,
    ],
    "a duration that is no number": [
      (attempt) => ({ result: { attempt, outcome: 1, durationSeconds: Number.NaN } }),
      /NaN/,
    ],
    "more output than is kept": [
      (attempt) => ({ result: { attempt, outcome: 1, terminalOutput: Buffer.alloc(9999) } }),
      /terminal_output has 9999/,
    ],
  };
  for (const [name, [message, details]] of Object.entries(later)) {
    test(`later: ${name}`, async () => {
      const { actor, lease, store, learner } = await leased();
      actor.send(message(lease.attempt));
      const ended = await within(actor.status, "the end of the stream");
      assert.equal(ended.code, code.INVALID_ARGUMENT);
      assert.match(ended.details, details);
      // The execution is not lost by it: the actor comes back with nothing, and gets it again.
      const back = await newActor(learner);
      const again = await back.nextLease();
      back.handIn(again.attempt);
      await back.next("ack");
      assert.equal(store.counts().completed, 1);
    });
  }

  test("silence instead of hello", async () => {
    const { address } = await newLearner({ helloSeconds: 0.1 });
    const actor = new TestActor(address);
    assert.equal((await within(actor.status, "the end of the stream")).code, code.DEADLINE_EXCEEDED);
  });

  test("bytes that are no message", async () => {
    const { address, learner } = await leased().then((all) => ({ ...all, address: all.learner.address }));
    const actor = new TestActor(address, "actor-9");
    // A field number of 0 does not exist.
    actor.send({ hello: { actor: "x" }, $unknowns: [Buffer.from([0x00, 0x01])] });
    const ended = await within(actor.status, "the end of the stream");
    assert.notEqual(ended.code, code.OK);
    assert.equal(learner.server.actors().filter(({ connected }) => connected).length, 1);
  });
});

describe("streams that break", { concurrency: 6 }, () => {
  test("the actor keeps what it runs and hands it in on the next stream", async () => {
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

  test("a lease without heartbeats goes to somebody else; its late result is refused, its late actor told", async () => {
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

  test("heartbeats keep a lease longer than leaseSeconds; those of what does not count are answered by revoke", async () => {
    const { actor, lease, store } = await leased({ store: { leaseSeconds: 1 } });
    actor.beat(() => [lease.attempt]);
    await sleep(1800);
    assert.equal(store.counts().running, 1);
    assert.equal(store.counts().retried, 0);
    actor.heartbeat([lease.attempt, { execution: "z", number: 1, fence: "99" }]);
    assert.equal((await actor.next("revoke")).attempt?.execution, "z");
    assert.ok(!actor.has("revoke"));
  });

  test("an actor that is connected and silent is let go", async () => {
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

  test("the learner restarts on the same port: what runs is handed in, what was acknowledged or revoked is known", async () => {
    const learner = await startLearner();
    const { store } = learner;
    store.addSamples(["a", "b", "c"].map((id) => newSample(id)));
    const actor = await newActor(learner, "actor-0", 3);
    const [a, b, c] = [await actor.nextLease(), await actor.nextLease(), await actor.nextLease()];
    actor.handIn(b.attempt);
    await actor.next("ack");
    store.abandon(["c"], "not needed");
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

  test("after a restart, what nobody shows within the grace period is queued again", async () => {
    const { learner, actor } = await leased();
    await learner.stop();
    actor.end();
    const again = await newLearner({ path: learner.path, store: { leaseGraceSeconds: 0.2 } });
    assert.equal(again.store.counts().running, 1);
    await until(() => again.store.counts().queued === 1, "the lease ended");
  });
});

describe("who gets what", { concurrency: 6 }, () => {
  test("as many leases as slots are free, the oldest first, however much an actor asks for", async () => {
    const learner = await newLearner();
    const actor = new TestActor(learner.address);
    await actor.hello({ slots: 2 });
    actor.ready(1e6);
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

  test("a slot is free again when its result is accepted, although the actor said so before", async () => {
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

  test("drain: no new leases, what runs is handed in, later actors are told too", async () => {
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
    assert.deepEqual(learner.server.whatBlocks().reason, "Draining");
  });

  test("one actor can be drained alone", async () => {
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

  test("three times: the program is the cause, and it has failed", async () => {
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

  test("twice, and once for another reason: lost, as infrastructure is", async () => {
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

describe("waiting", { concurrency: 6 }, () => {
  test("resolves at the number asked for", async () => {
    const { actor, lease, server } = await leased();
    const wait = server.waitForFinished(1);
    actor.handIn(lease.attempt);
    assert.equal(await within(wait, "the wait"), 1);
  });

  test("resolves with fewer when nothing is left that could finish", async () => {
    const { actor, lease, server, store } = await leased({ store: { maxAttempts: 1 } });
    store.addSamples([newSample("n", { state: "notExecuted" })]);
    const wait = server.waitForFinished(2);
    actor.handIn(lease.attempt, { header: { outcome: messages.Outcome.LOST } });
    assert.equal(await within(wait, "the wait"), 1);
  });

  test("gives up at its deadline and names what blocks, in the log's words, in the status and in the error", async () => {
    const { server, store, status } = await newLearner();
    store.addSamples([newSample("a")]);
    const heard: string[] = [];
    const wait = server.waitForFinished(1, {
      stallSeconds: 0.2,
      reportSeconds: 0.05,
      onBlocked: ({ reason }) => heard.push(`${reason}: ${status.current.message}`),
    });
    await assert.rejects(wait, {
      name: "ServerError",
      code: "stalled",
      message: /no actor is connected: 1 execution queued, 0 running/,
    });
    assert.ok(heard.length >= 2);
    assert.match(heard[0], /^NoActors: no actor is connected/);
  });

  test("ends with the reason of its signal", async () => {
    const { server, store } = await newLearner();
    store.addSamples([newSample("a")]);
    const controller = new AbortController();
    const wait = server.waitForFinished(1, { signal: controller.signal });
    controller.abort(new Error("SIGTERM"));
    await assert.rejects(wait, /SIGTERM/);
    await assert.rejects(server.waitForFinished(1, { signal: controller.signal }), /SIGTERM/);
  });
});

test("a port that is taken is named", async () => {
  const { address } = await newLearner();
  await assert.rejects(startLearner({ address }), {
    name: "ServerError",
    code: "listen",
    message: new RegExp(address),
  });
});
