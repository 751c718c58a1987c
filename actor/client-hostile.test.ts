/** Tests the client against a hostile or broken learner, over real mutual TLS: it keeps working, in bounded memory and time. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type FromLearnerMessage, messages } from "../proto/service.ts";
import { completed, setUp } from "./client.fixture.ts";
import type { Learner } from "./learner.fixture.ts";

const MEBIBYTE = 1 << 20;
const LONG = "x".repeat(MEBIBYTE);

/** Waits until the sent messages have been read as well: messages arrive in order. */
async function worksOn(learner: Learner, executed: string[], name = "last"): Promise<void> {
  learner.lease(name);
  for (let i = 0; !executed.includes(name); i++) {
    assert.ok(i < 500, `${name} was not executed`);
    await sleep(10);
  }
}

describe("messages that make no sense", () => {
  const attempt = { execution: "unknown", number: 1, fence: "1" };
  const cases: Record<string, FromLearnerMessage[]> = {
    "without an attempt": [{ lease: {} }, { ack: {} }, { revoke: {} }, { lease: { task: "t" } }],
    "with attempts that have no fields": [
      { lease: { attempt: {} } },
      { ack: { attempt: {} } },
      { revoke: { attempt: {} } },
    ],
    "with attempts of 1 MiB": ["execution", "fence"].flatMap((field) => [
      { lease: { attempt: { ...attempt, [field]: LONG } } },
      { ack: { attempt: { ...attempt, [field]: LONG } } },
      { revoke: { attempt: { ...attempt, [field]: LONG } } },
    ]),
    "about attempts that it does not have": [
      { ack: { attempt, accepted: true } },
      { ack: { attempt, reason: "digest" } },
      { revoke: { attempt, reason: LONG } },
    ],
    "with a second Welcome or with nothing": [{ welcome: { heartbeatSeconds: 1e-9, idleSeconds: 1e-9 } }, {}],
  };
  for (const [name, sent] of Object.entries(cases))
    test(`the actor runs the next lease after messages ${name}`, async () => {
      const { learner, client, executed, lines } = await setUp();
      await learner.next("ready");
      for (const message of sent) learner.send(message);
      await worksOn(learner, executed);
      assert.deepEqual([executed, client.held], [["last"], 1]);
      assert.equal(learner.count("hello"), 1, "on the same stream");
      assert.ok(JSON.stringify(lines).length < 5000);
    });

  test("an actor runs no lease that arrives before the Welcome", async () => {
    const streams: Learner["streams"] = [];
    streams.push = (...added) => {
      for (const stream of added) stream.write({ lease: { attempt: { ...attempt, execution: "early" }, task: "t" } });
      return Array.prototype.push.apply(streams, added);
    };
    const { learner, executed } = await setUp({ learner: { streams } });
    await learner.next("ready");
    await worksOn(learner, executed);
    assert.deepEqual(executed, ["last"]);
  });

  test("an actor that is told to drain a thousand times ends once", async () => {
    const { learner, ended, lines } = await setUp();
    await learner.next("ready");
    for (let times = 0; times < 1000; times++) learner.send({ drain: { reason: LONG.slice(0, 1000) } });
    assert.equal(await ended, "drained");
    assert.ok(JSON.stringify(lines).length < 2000);
  });

  test("a message above the size limit breaks the stream, and the next stream works", async () => {
    const { learner, executed } = await setUp({ learner: { maxMessageBytes: 128 * MEBIBYTE } });
    await learner.next("ready");
    learner.lease("huge", { program: Buffer.alloc(64 * MEBIBYTE) });
    await learner.next("ready", 2);
    await worksOn(learner, executed);
    assert.deepEqual(executed, ["last"]);
  });
});

describe("a learner that sends more leases than the actor asked for", () => {
  test("an actor keeps at most twice as many leases as it has slots; the others are lost at once and take no memory", async () => {
    const { learner, client, executed, lines } = await setUp();
    await learner.next("ready");
    for (let index = 0; index < 1000; index++) learner.lease(`e${index}`, { program: Buffer.alloc(10_000) });
    const lost = await learner.next("result", 900, () => true, 10);
    assert.equal(lost.outcome, messages.Outcome.LOST);
    assert.match(lost.detail, /more leases than 2 slots can take/);
    assert.deepEqual([executed.length, client.held, client.state.running], [4, 4, 4]);
    assert.ok(lines.length < 20, `${lines.length} lines`);
  });

  test("revoked leases count until their programs have ended", async () => {
    const { learner, executed } = await setUp({ execute: () => new Promise(() => {}) });
    await learner.next("ready");
    for (let index = 0; index < 200; index++) learner.send({ revoke: { attempt: learner.lease(`e${index}`) } });
    await learner.next("result", 150);
    assert.equal(executed.length, 4);
  });

  test("an actor for one execution runs no other", async () => {
    const { learner, executed } = await setUp({ maxExecutions: 1 });
    await learner.next("ready");
    learner.lease("first");
    learner.lease("second");
    assert.match((await learner.next("result")).detail, /takes no more leases/);
    assert.deepEqual(executed, ["first"]);
  });

  test("a draining actor still runs the leases that it had offered slots for, and then ends", async () => {
    const { learner, ended, executed } = await setUp({ execute: async () => completed() });
    await learner.next("ready");
    learner.lease("before");
    await learner.next("result");
    learner.send({ drain: {} });
    for (let index = 0; index < 50; index++) learner.lease(`e${index}`);
    await learner.next("result", 51);
    assert.ok(executed.length <= 3, `${executed}`);
    for (const execution of executed)
      learner.send({ ack: { attempt: { execution, number: 1, fence: "7" }, accepted: true } });
    assert.equal(await ended, "drained");
  });

  test("an actor asks for no more leases while too many results are not acknowledged, and asks again once some are", async () => {
    const { learner, client } = await setUp({ heldPerSlot: 3, execute: async () => completed() });
    await learner.next("ready");
    const attempts = Array.from({ length: 30 }, (_, index) => `e${index}`);
    for (const [index, name] of attempts.entries()) {
      learner.lease(name);
      await learner.next("result", index + 1);
    }
    assert.equal(client.held, 6);
    const last = learner.received.filter((message) => message.message === "ready").at(-1)!;
    assert.equal(last.ready!.freeSlots, 0);
    assert.match((await learner.next("result", 30)).detail, /wait for their acknowledgement/);
    const before = learner.count("ready");
    for (const execution of attempts.slice(0, 2))
      learner.send({ ack: { attempt: { execution, number: 1, fence: "7" }, accepted: true } });
    assert.equal((await learner.next("ready", before + 2)).freeSlots, 2);
  });

  test("an actor asks for no more leases while the submissions that are not acknowledged hold too many bytes", async () => {
    const { learner, client } = await setUp({
      heldBytes: 100_000,
      execute: async () => completed(randomBytes(60_000)),
    });
    await learner.next("ready");
    for (const [index, name] of ["first", "second"].entries()) {
      learner.lease(name);
      await learner.next("ready", index + 2);
    }
    learner.lease("third");
    assert.match((await learner.next("result", 3)).detail, /wait for their acknowledgement/);
    assert.equal(client.held, 2);
  });
});

describe("nonsensical intervals from a learner", () => {
  for (const heartbeatSeconds of [0, -1, Number.NaN, 1e-9, 1e308, Number.POSITIVE_INFINITY])
    test(`heartbeatSeconds ${heartbeatSeconds} does not make the actor send a flood of heartbeats`, async () => {
      const { learner } = await setUp({ learner: { welcome: { heartbeatSeconds } } });
      await learner.next("ready");
      await sleep(400);
      assert.ok(learner.count("heartbeat") <= 9, `${learner.count("heartbeat")}`);
    });

  for (const idleSeconds of [0, -1, Number.NaN, 1e308, 2 ** 31, Number.POSITIVE_INFINITY])
    test(`idleSeconds ${idleSeconds} does not make the actor leave at once`, async () => {
      const { learner, executed } = await setUp({ learner: { welcome: { heartbeatSeconds: 5, idleSeconds } } });
      await learner.next("ready");
      await sleep(100);
      await worksOn(learner, executed);
    });

  test("the pauses between streams grow and few lines are logged when each stream ends after its Welcome", async () => {
    const { learner, lines } = await setUp({ maxReconnectSeconds: 5, random: () => 0 });
    for (const end = performance.now() + 2000; performance.now() < end; await sleep(10))
      if (learner.count("ready") > 0) for (const stream of learner.streams.splice(0)) stream.end();
    // Dials after 0.2, 0.4 and 0.8 s.
    assert.ok(learner.count("hello") >= 2 && learner.count("hello") <= 5, `${learner.count("hello")} streams`);
    assert.ok(lines.length <= 12, `${lines.length} lines`);
  });
});

describe("messages to a learner", () => {
  test("only one heartbeat waits for a learner that does not read", async () => {
    const { learner } = await setUp({ execute: async () => completed(randomBytes(4 * MEBIBYTE)) });
    await learner.next("heartbeat");
    learner.streams[0]!.pause();
    learner.lease("e1");
    await sleep(1500); // about 30 heartbeats
    learner.streams[0]!.resume();
    const resumedMs = performance.now();
    await learner.next("chunk", 16);
    await sleep(100); // for messages behind them
    // On a busy machine the chunks take long, and heartbeats go on meanwhile.
    const meanwhile = (performance.now() - resumedMs) / (1000 * learner.welcome.heartbeatSeconds!);
    // Heartbeats before the result fit into the stream's buffers, and did not wait.
    const fromResult = learner.received.slice(learner.received.findIndex(({ message }) => message === "chunk"));
    const waited = fromResult.filter(({ message }) => message === "heartbeat").length - meanwhile;
    assert.ok(waited < 4, `${waited} heartbeats waited`);
  });

  test("a submission that cannot be packed is lost, and the next lease runs", async () => {
    const { learner, executed } = await setUp({ execute: async () => completed({ length: 1 } as Buffer) });
    await learner.next("ready");
    learner.lease("e1");
    const result = await learner.next("result");
    assert.equal(result.outcome, messages.Outcome.LOST);
    assert.match(result.detail, /could not be packed/);
    await worksOn(learner, executed);
  });
});
