/** Tests that invalid messages end their stream with a status that names the fault. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { status as code } from "@grpc/grpc-js";
import { leased, newActor, newLearner } from "./learners.fixture.ts";
import { type Attempt, TestActor, within } from "./server.fixture.ts";

describe("invalid messages end their stream with a status that says why", { concurrency: 6 }, () => {
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
    test(`an invalid first message ends its stream: ${name}`, async () => {
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
    test(`a Hello is refused because its sandbox ${name}`, async () => {
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
    test(`a later invalid message ends its stream: ${name}`, async () => {
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

  test("a stream without a Hello ends", async () => {
    const { address } = await newLearner({ helloSeconds: 0.1 });
    const actor = new TestActor(address);
    assert.equal((await within(actor.status, "the end of the stream")).code, code.DEADLINE_EXCEEDED);
  });

  test("bytes that are no message end the stream", async () => {
    const { address, learner } = await leased().then((all) => ({ ...all, address: all.learner.address }));
    const actor = new TestActor(address, "actor-9");
    // A field number of 0 does not exist.
    actor.send({ hello: { actor: "x" }, $unknowns: [Buffer.from([0x00, 0x01])] });
    const ended = await within(actor.status, "the end of the stream");
    assert.notEqual(ended.code, code.OK);
    assert.equal(learner.server.actors().filter(({ connected }) => connected).length, 1);
  });
});
