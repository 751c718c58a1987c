import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { deflateSync } from "node:zlib";
import { status as code } from "@grpc/grpc-js";
import { CHUNK_BYTES, messages, PROTOCOL_VERSION } from "../../proto/service.ts";
import { newSample } from "../store/store.fixture.ts";
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
} from "./server.fixture.ts";
import { whatBlocks } from "./waiting.ts";

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

/** Returns an actor that leased sample `a`. */
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

  test("what the learner writes shares its commit with the lease of what it queues; its fault is thrown", async (t) => {
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
  const hello = (change: object) => ({
    hello: { protocolVersion: 1, actor: "a", slots: 1, isolationLevel: "none", ...change },
  });
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, "1"]));
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
    "holding nonsense": [
      { hello: { protocolVersion: 1, actor: "a", isolationLevel: "none", slots: 1, holding: [{}] } },
      /an attempt without/,
    ],
    "holding too much": [
      {
        hello: {
          protocolVersion: 1,
          actor: "a",
          isolationLevel: "none",
          slots: 1,
          holding: Array.from({ length: 200 }, (_, n) => ({ execution: "a", number: 1, fence: String(n + 1) })),
        },
      },
      /200 attempts/,
    ],
    "an empty message": [{}, /not Hello/],
    "no level of isolation": [{ hello: { protocolVersion: 1, actor: "a", slots: 1 } }, /isolation_level is ''/],
    "a level of isolation that there is none": [
      { hello: { protocolVersion: 1, actor: "a", slots: 1, isolationLevel: "x".repeat(200_000) } },
      /isolation_level is 'x{40}': it must be one of namespaces, landlock, none/,
    ],
    "a long digest": [hello({ pythonDigest: "x".repeat(129) }), /python_digest has 129 characters/],
    "versions without end": [hello({ versions: many(65) }), /65 versions, more than 64/],
    "packages without end": [hello({ packages: many(4097) }), /4097 packages, more than 4096/],
    "a version with control characters": [hello({ versions: { python: "3\n" } }), /versions has control/],
    "capabilities without end": [hello({ capabilities: Object.keys(many(33)) }), /33 capabilities, more than 32/],
    "layers without end": [hello({ isolationMissing: Object.keys(many(33)) }), /33 isolation_missing, more than 32/],
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
      actor.send({ hello: { protocolVersion: 1, actor: "a", isolationLevel: "none", slots: 1, packages } });
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
    "a duration beyond all numbers": [
      (attempt) => ({ result: { attempt, outcome: 1, durationSeconds: 1.7e308 } }),
      /duration_seconds is 1.7e\+308/,
    ],
    "an endless duration": [
      (attempt) => ({ result: { attempt, outcome: 1, durationSeconds: Number.POSITIVE_INFINITY } }),
      /duration_seconds is Infinity/,
    ],
    "CPU time that is no number, of a lost attempt": [
      (attempt) => ({ result: { attempt, outcome: 6, cpuSeconds: Number.NaN } }),
      /cpu_seconds is NaN/,
    ],
    "an exit status that there is none": [
      (attempt) => ({ result: { attempt, outcome: 1, exitStatus: -1 } }),
      /exit_status is -1/,
    ],
    "a signal that there is none": [
      (attempt) => ({ result: { attempt, outcome: 1, signal: 2 ** 30 } }),
      /signal is 1073741824/,
    ],
    "memory beyond whole numbers": [
      (attempt) => ({ result: { attempt, outcome: 1, peakMemoryBytes: 2 ** 60 } }),
      /peak_memory_bytes is/,
    ],
    "a level of isolation that there is none": [
      (attempt) => ({ result: { attempt, outcome: 1, isolationLevel: "x".repeat(200_000) } }),
      /isolation_level is 'x{40}': it must be one of/,
    ],
    "markers without end": [
      (attempt) => ({
        result: { attempt, outcome: 1, markers: Array.from({ length: 65 }, () => ({ name: "loaded data" })) },
      }),
      /65 markers, more than 64/,
    ],
    "more free slots than any actor has": [() => ({ ready: { freeSlots: 257 } }), /free_slots is 257/],
    "a heartbeat whose seconds are no number": [
      () => ({ heartbeat: { busySeconds: Number.NaN } }),
      /busy_seconds is NaN/,
    ],
    "a heartbeat that ran for ever": [
      (attempt) => ({ heartbeat: { running: [{ attempt, elapsedSeconds: Number.POSITIVE_INFINITY }] } }),
      /elapsed_seconds is Infinity/,
    ],
    "a heartbeat with a long marker": [
      (attempt) => ({ heartbeat: { running: [{ attempt, markers: ["x".repeat(129)] }] } }),
      /markers has 129 characters/,
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
      // The execution is not lost: the actor reconnects with nothing and gets it again.
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

  test("an actor cannot sit on a lease by heartbeats: past its end it is lost, and the actor told", async () => {
    const { actor, lease, store } = await leased({ store: { leaseSeconds: 1, longestSeconds: 1.5 } });
    actor.beat(() => [lease.attempt]);
    const { attempt, reason } = await actor.next("revoke");
    assert.equal(attempt?.fence, lease.attempt.fence);
    assert.match(reason ?? "", /no result within 1.5 s/);
    assert.equal(store.counts().running, 0);
  });

  test("durations, CPU times and markers are cut to what can have been since the lease", async () => {
    const { actor, lease, store } = await leased({ limitsOf: () => ({ ...LIMITS, processes: 2 }) });
    const markers = [{ name: "loaded data", atSeconds: 1e6 }];
    actor.handIn(lease.attempt, { header: { durationSeconds: 1.7e9, cpuSeconds: 1e10, markers } });
    assert.equal((await actor.next("ack")).reason, "accepted");
    const { durationSeconds, cpuSeconds, markers: seen } = store.samples(["a"])[0].result!;
    assert.ok(durationSeconds > 0 && durationSeconds < 15, String(durationSeconds));
    assert.equal(cpuSeconds, 2 * durationSeconds);
    assert.equal(seen[0].atSeconds, durationSeconds);
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

  test("after a restart, what nobody shows within the grace period is queued again", async () => {
    const { learner, actor } = await leased();
    await learner.stop();
    actor.end();
    const again = await newLearner({ path: learner.path, store: { leaseGraceSeconds: 0.2 } });
    assert.equal(again.store.counts().running, 1);
    await until(() => again.store.counts().queued === 1, "the lease ended");
  });
});

describe("how much an actor may hold and say", { concurrency: 4 }, () => {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  /** Announces an incompressible submission of 1 MiB and starts the upload. */
  const begin = (actor: TestActor, attempt: Attempt) => {
    const info = { bytes: 2 ** 20, compressedBytes: 2 ** 20, chunks: 4, sha256: "0".repeat(64) };
    actor.send({ result: { attempt, outcome: 1, isolationLevel: "none", submission: info } });
    actor.send({ chunk: { attempt, index: 0, data: chunk } });
  };

  test("unfinished submissions of one stream hold so much together, and no more once their leases end", async () => {
    const learner = await newLearner({ streamUploadBytes: 2.5 * 2 ** 20, store: { longestSeconds: 2 } });
    learner.store.addSamples(["a", "b", "c", "d"].map((id) => newSample(id)));
    const actor = await newActor(learner, "actor-0", 4);
    const leases: Awaited<ReturnType<TestActor["nextLease"]>>[] = [];
    for (const _ of [1, 2, 3, 4]) leases.push(await actor.nextLease());
    actor.beat(() => leases.map(({ attempt }) => attempt));
    for (const { attempt } of leases) begin(actor, attempt);
    const refused = [await actor.next("ack"), await actor.next("ack")];
    assert.deepEqual(
      refused.map(({ attempt, reason }) => [attempt?.execution, reason]),
      [
        ["c", "busy"],
        ["d", "busy"],
      ],
    );
    assert.ok(learner.server.uploadBytes > 2 ** 21 && learner.server.uploadBytes < 2.5 * 2 ** 20);
    for (const _ of leases) await actor.next("revoke");
    assert.equal(learner.server.uploadBytes, 0);
  });

  test("who holds more gives room to who holds less", async () => {
    const learner = await newLearner({ uploadBytes: 2.5 * 2 ** 20 });
    learner.store.addSamples(["a", "b", "c"].map((id) => newSample(id)));
    const greedy = await newActor(learner, "actor-0", 2);
    const held = [await greedy.nextLease(), await greedy.nextLease()];
    for (const { attempt } of held) begin(greedy, attempt);
    await until(() => learner.server.uploadBytes > 2 ** 21, "both uploads begin");
    const honest = await newActor(learner, "actor-1");
    const { attempt } = await honest.nextLease();
    honest.handIn(attempt, { submission: randomBytes(2 ** 20) });
    assert.equal((await honest.next("ack")).reason, "accepted");
    const given = await greedy.next("ack");
    assert.deepEqual([given.attempt?.execution, given.reason], ["b", "busy"]);
  });

  test("so do the submissions of all streams; one that is handed in again later is taken", async () => {
    const learner = await newLearner({ uploadBytes: 1.5 * 2 ** 20 });
    learner.store.addSamples(["a", "b"].map((id) => newSample(id)));
    const [greedy, honest] = [await newActor(learner, "actor-0"), await newActor(learner, "actor-1")];
    const [held, wanted] = [await greedy.nextLease(), await honest.nextLease()];
    begin(greedy, held.attempt);
    await until(() => learner.server.uploadBytes > 0, "the upload begins");
    const submission = randomBytes(2 ** 20);
    honest.handIn(wanted.attempt, { submission });
    assert.equal((await honest.next("ack")).reason, "busy");
    greedy.vanish();
    await until(() => learner.server.uploadBytes === 0, "the upload ends with its stream");
    honest.handIn(wanted.attempt, { submission });
    assert.equal((await honest.next("ack")).reason, "accepted");
    await until(() => learner.server.uploadBytes === 0, "the upload is in the store");
  });

  test("an upload of an attempt whose lease is over ends too", async () => {
    const { learner, actor, lease } = await leased({ store: { leaseSeconds: 0.5, longestSeconds: 0.5 } });
    actor.beat();
    await actor.next("revoke");
    begin(actor, lease.attempt);
    await until(() => learner.server.uploadBytes > 0, "the upload begins");
    assert.match((await actor.next("revoke")).reason ?? "", /did not come in time/);
    assert.equal(learner.server.uploadBytes, 0);
  });

  test("a chunk with another attempt's fence ends the stream", async () => {
    const { actor, lease } = await leased();
    begin(actor, lease.attempt);
    actor.send({ chunk: { attempt: { ...lease.attempt, execution: "b" }, index: 1, data: chunk } });
    assert.equal((await within(actor.status, "the end of the stream")).code, code.INVALID_ARGUMENT);
  });

  test("a flood ends its stream", async () => {
    const { learner, actor } = await leased({ messagesPerSecond: 100, floodSeconds: 2 });
    for (let sent = 0; sent < 150; sent++) actor.heartbeat([]);
    await sleep(100);
    assert.equal(learner.server.actors()[0]?.connected, true, "what is less than the flood is no flood");
    for (let sent = 0; sent < 200; sent++) actor.heartbeat([]);
    const { code: ended, details } = await within(actor.status, "the end of the stream");
    assert.equal(ended, code.RESOURCE_EXHAUSTED);
    assert.match(details, /more than 100 messages a second for 2 s/);
  });

  test("heartbeats count by the attempts that they name; chunks of a submission do not count", async () => {
    const { actor, lease } = await leased({ messagesPerSecond: 10, floodSeconds: 2 });
    actor.handIn(lease.attempt, { submission: randomBytes(2 * 2 ** 20 - 4096) });
    assert.equal((await actor.next("ack")).reason, "accepted");
    actor.heartbeat(Array.from({ length: 60 }, () => lease.attempt));
    assert.equal((await within(actor.status, "the end of the stream")).code, code.RESOURCE_EXHAUSTED);
  });

  test("of streams without a Hello one certificate has a few", async () => {
    const { address } = await newLearner();
    const streams = Array.from({ length: 5 }, () => new TestActor(address));
    assert.equal((await within(streams[0].status, "the end of the first")).code, code.ABORTED);
    await streams[4].hello();
  });
});

describe("who gets what", { concurrency: 6 }, () => {
  test("as many leases as slots are free, the oldest first, however much an actor asks for", async () => {
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
    assert.deepEqual(whatBlocks(learner.store.totals(), learner.server.actors()).reason, "Draining");
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

  test("gives up where nobody else brings actors and names what blocks, in the status and in the error", async () => {
    const { server, store, status } = await newLearner();
    store.addSamples([newSample("a")]);
    const heard: string[] = [];
    const wait = server.waitForFinished(1, {
      idleSeconds: 0.2,
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

  test("waits for actors for as long as it takes, and says since when none is there", async () => {
    const before = Date.now();
    const { learner, actor, lease, server, status } = await leased();
    const wait = server.waitForFinished(1, { stallSeconds: 0.05, reportSeconds: 0.05 });
    await sleep(300); // a running program is waited for
    actor.vanish();
    const gone = Date.now();
    await until(() => status.current.blocked === "NoActors", "the status names it");
    const since = status.current.blockedSinceUnixMs ?? 0;
    assert.ok(since >= gone - 100 && since <= Date.now(), `${since} is when the actor left, not ${before}`);
    await sleep(300);
    assert.equal(status.current.blockedSinceUnixMs, since);
    const next = new TestActor(learner.address, "actor-0");
    await next.hello({ slots: 1, holding: [lease.attempt] });
    next.handIn(lease.attempt);
    assert.equal(await within(wait, "the wait"), 1);
    assert.deepEqual([status.current.blocked, status.current.blockedSinceUnixMs], ["", 0]);
  });

  test("gives up when leases are over and nobody ends them", async () => {
    const { server } = await leased({ store: { leaseSeconds: 0.2 }, tickSeconds: 3600 });
    const wait = server.waitForFinished(1, { stallSeconds: 0.2 });
    await assert.rejects(within(wait, "the end of the wait"), {
      code: "stalled",
      message: /^no result \d+ s after the end of a lease: programs run on 1 actor/,
    });
  });

  test("ends when something else does, with its error if it has one, and takes it for no trouble meanwhile", async () => {
    const { server } = await newLearner();
    const heard: string[] = [];
    const onBlocked = ({ reason }: { reason: string }) => heard.push(reason);
    const other = sleep(150);
    await within(server.waitForChange({ reportSeconds: 0.05, onBlocked, other }), "the other's end");
    assert.deepEqual(heard, [], "that no execution is in flight says nothing");
    const failing = sleep(20).then(() => Promise.reject(new Error("a worker has ended")));
    await assert.rejects(server.waitForChange({ other: failing }), /a worker has ended/);
  });

  test("a change is a lease, too", async () => {
    const { server, store } = await newLearner();
    store.addSamples([newSample("a")]);
    const wait = server.waitForChange();
    store.leases.takeAll(["actor-0"]);
    await within(wait, "the lease");
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
