/** Tests the client against the test's own learner, over real mutual TLS. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inflateSync } from "node:zlib";
import * as grpc from "@grpc/grpc-js";
import { type FromLearnerMessage, type longrun, messages } from "../proto/service.ts";
import { completed, setUp, strangersTls } from "./client.fixture.ts";

describe("one execution", () => {
  test("an actor understands an older learner, which still lists what programs import", async () => {
    const warm = (field: number) => ({ $unknowns: [Uint8Array.of((field << 3) | 2, 3, 0x0a, 1, 0x61)] }); // { modules: ["a"] }
    const welcome = { heartbeatSeconds: 0.05, leaseSeconds: 1, idleSeconds: 0, ...warm(7) };
    const { learner, started } = await setUp({ learner: { welcome } });
    await learner.next("ready");
    learner.send(warm(6) as FromLearnerMessage);
    learner.lease("e1");
    (await started("e1")).end(completed());
    assert.equal((await learner.next("result")).outcome, messages.Outcome.COMPLETED);
    assert.equal(learner.count("hello"), 1);
  });

  test("an execution goes from Hello to the acknowledgement, and its submission is sent in chunks", async () => {
    const { learner, client, started } = await setUp({ pythonDigest: "abc", versions: { numpy: "2" } });
    const hello = await learner.next("hello");
    assert.deepEqual(
      [hello.protocolVersion, hello.actor, hello.slots, hello.isolationLevel, hello.pythonDigest, hello.holding.length],
      [1, "actor-0", 2, "namespaces", "abc", 0],
    );
    assert.equal((await learner.next("ready")).freeSlots, 2);
    const attempt = learner.lease("e1");
    const running = await started("e1");
    const heartbeat = await learner.next("heartbeat", 1, (message) => (message.heartbeat?.running?.length ?? 0) > 0);
    assert.equal(heartbeat.running[0].attempt.execution, "e1");
    assert.deepEqual(heartbeat.running[0].markers, ["loaded data"]);
    const submission = randomBytes(700_000); // incompressible: three chunks
    running.end(completed(submission));
    const result = await learner.next("result");
    assert.equal(result.outcome, messages.Outcome.COMPLETED);
    assert.equal(result.durationSeconds, 1.5);
    assert.equal(result.submission.chunks, 3);
    await learner.next("chunk", 3);
    const chunks = learner.received.filter((message) => message.message === "chunk").map((message) => message.chunk!);
    assert.deepEqual(
      chunks.map((chunk) => chunk.index),
      [0, 1, 2],
    );
    const inflated = inflateSync(Buffer.concat(chunks.map((chunk) => chunk.data!)));
    assert.equal(createHash("sha256").update(inflated).digest("hex"), result.submission.sha256);
    assert.deepEqual(inflated, submission);
    assert.equal(client.held, 1, "a result is kept until it is acknowledged");
    assert.equal((await learner.next("ready", 2)).freeSlots, 2);
    learner.send({ ack: { attempt, accepted: true, reason: "accepted" } });
    for (let i = 0; client.held > 0 && i < 500; i++) await sleep(10);
    assert.equal(client.held, 0);
  });

  test("an empty submission differs from a missing one", async () => {
    const { learner, started } = await setUp();
    await learner.next("ready");
    learner.lease("empty");
    learner.lease("none");
    (await started("empty")).end(completed(Buffer.alloc(0)));
    const empty = await learner.next("result", 1);
    assert.deepEqual([Number(empty.submission.bytes), empty.submission.chunks], [0, 1]);
    (await started("none")).end(completed());
    assert.equal((await learner.next("result", 2)).submission ?? null, null);
  });

  test("a lease that arrives twice runs once", async () => {
    const { learner, client, started } = await setUp();
    await learner.next("ready");
    learner.lease("e1");
    learner.lease("e1");
    await started("e1");
    await sleep(50);
    assert.equal(client.held, 1);
  });

  test("a result that arrived damaged is sent again, three times in all", async () => {
    const { learner, client, started } = await setUp();
    await learner.next("ready");
    const attempt = learner.lease("e1");
    (await started("e1")).end(completed(Buffer.from("a")));
    for (let times = 1; times <= 3; times++) {
      await learner.next("chunk", times);
      learner.send({ ack: { attempt, accepted: false, reason: "digest" } });
    }
    await sleep(100);
    assert.equal(learner.count("result"), 3);
    assert.equal(client.held, 0);
  });

  test("the actor sends one submission after the other, and repeats a submission later if the learner has no room for it", async () => {
    const { learner, client, started } = await setUp({ random: () => 0 });
    await learner.next("ready");
    const [first, second] = [
      learner.lease("e1"),
      learner.lease("e2", { attempt: { execution: "e2", number: 1, fence: "8" } }),
    ];
    const submission = () => randomBytes(2 * 2 ** 20);
    const running = [await started("e1"), await started("e2")];
    for (const { end } of running) end(completed(submission()));
    await learner.next("chunk", 18);
    const order = learner.received.flatMap(({ chunk }) => chunk?.attempt?.execution ?? []);
    assert.deepEqual(order, [...Array(9).fill(order[0]), ...Array(9).fill(order[9])]);
    learner.send({ ack: { attempt: first, accepted: false, reason: "busy" } });
    learner.send({ ack: { attempt: { ...second, execution: "e2", fence: "8" }, accepted: true, reason: "accepted" } });
    await learner.next("chunk", 27);
    learner.send({ ack: { attempt: first, accepted: true, reason: "accepted" } });
    for (let i = 0; client.held > 0 && i < 500; i++) await sleep(10);
    assert.deepEqual([client.held, learner.count("result")], [0, 3]);
  });
});

describe("a broken stream", () => {
  test("the program runs on; its attempt is in the next Hello and its result is handed in", async () => {
    const { learner, started } = await setUp();
    await learner.next("ready");
    learner.lease("e1");
    const running = await started("e1");
    learner.kill();
    await sleep(50);
    assert.equal(running.signal.aborted, false);
    await learner.start(learner.port);
    const hello = await learner.next("hello", 2);
    assert.deepEqual(
      hello.holding.map((attempt: longrun.v1alpha1.Attempt.$Properties) => [
        attempt.execution,
        attempt.number,
        attempt.fence,
      ]),
      [["e1", 1, "7"]],
    );
    await learner.next("ready", 2);
    running.end(completed(Buffer.from("x")));
    assert.equal((await learner.next("result")).attempt.execution, "e1");
  });

  test("results that were finished during the break, or not acknowledged before it, are sent after it", async () => {
    const { learner, client, started } = await setUp();
    await learner.next("ready");
    const first = learner.lease("unacknowledged");
    const second = learner.lease("offline");
    (await started("unacknowledged")).end(completed(Buffer.from("1")));
    await learner.next("result");
    learner.kill();
    await sleep(50);
    (await started("offline")).end(completed(Buffer.from("2")));
    await learner.start(learner.port);
    const { holding } = await learner.next("hello", 2);
    const held = holding.map(({ execution }: longrun.v1alpha1.Attempt.$Properties) => execution).sort();
    assert.deepEqual(held, ["offline", "unacknowledged"], "or the learner has them run again");
    await learner.next("result", 3);
    const sent = learner.received.filter((message) => message.message === "result");
    assert.deepEqual(
      sent
        .slice(1)
        .map((message) => message.result!.attempt!.execution)
        .sort(),
      ["offline", "unacknowledged"],
    );
    learner.send({ ack: { attempt: first, accepted: false, reason: "duplicate" } });
    learner.send({ ack: { attempt: second, accepted: true, reason: "accepted" } });
    for (let i = 0; client.held > 0; i++) {
      assert.ok(i < 100);
      await sleep(10);
    }
  });

  test("attempts that the Welcome revokes are killed and not handed in", async () => {
    const { learner, client, started } = await setUp();
    await learner.next("ready");
    const attempt = learner.lease("e1");
    const running = await started("e1");
    learner.kill();
    learner.welcome = { ...learner.welcome, revoked: [attempt] };
    await sleep(30);
    await learner.start(learner.port);
    await learner.next("ready", 2);
    assert.equal(running.signal.aborted, true);
    await sleep(50);
    assert.equal(learner.count("result"), 0);
    assert.equal(client.held, 0);
  });

  test("the actor keeps dialling while nobody listens or while the certificate is a stranger's", async () => {
    const { learner, client } = await setUp({ tlsDirectory: await strangersTls.actor("actor-0") });
    await sleep(700);
    assert.equal(learner.received.length, 0);
    client.stop();
  });
});

describe("commands of the learner", () => {
  test("a revoked program is killed and its result is not handed in", async () => {
    const { learner, client, started } = await setUp();
    await learner.next("ready");
    const attempt = learner.lease("e1");
    const running = await started("e1");
    learner.send({ revoke: { attempt, reason: "discarded" } });
    await learner.next("ready", 2);
    assert.equal(running.signal.aborted, true);
    assert.equal(client.held, 0);
    assert.equal(learner.count("result"), 0);
  });

  test("a draining actor asks for no leases, finishes its programs, hands them in, sends Drained and ends", async () => {
    const { learner, ended, started } = await setUp();
    await learner.next("ready");
    const attempt = learner.lease("e1");
    const running = await started("e1");
    learner.send({ drain: { reason: "scaled down" } });
    await sleep(50);
    running.end(completed(Buffer.from("x")));
    await learner.next("chunk");
    assert.equal(learner.count("drained"), 0, "not before the acknowledgement");
    learner.send({ ack: { attempt, accepted: true, reason: "accepted" } });
    await learner.next("drained");
    assert.equal(await ended, "drained");
    assert.equal(learner.count("ready"), 1);
  });

  test("an actor without a lease for idleSeconds leaves", async () => {
    const { learner, ended } = await setUp({ learner: { welcome: { heartbeatSeconds: 5, idleSeconds: 0.2 } } });
    await learner.next("ready");
    assert.equal(await ended, "idle");
  });

  test("an actor with a running program is not idle", async () => {
    const { learner, client, started } = await setUp({
      learner: { welcome: { heartbeatSeconds: 5, idleSeconds: 0.15 } },
    });
    await learner.next("ready");
    learner.lease("e1");
    await started("e1");
    await sleep(400);
    assert.equal(client.held, 1);
  });

  test("an idle actor stays if the controller decides the number of actors", async () => {
    const { learner, client } = await setUp({
      leavesWhenIdle: false,
      learner: { welcome: { heartbeatSeconds: 5, idleSeconds: 0.05 } },
    });
    await learner.next("ready");
    await sleep(300);
    assert.equal(learner.count("drained"), 0);
    assert.equal(client.state.connected, true);
  });

  for (const [refusal, code] of [
    [grpc.status.PERMISSION_DENIED, "refused"],
    [grpc.status.UNAUTHENTICATED, "refused"],
    [grpc.status.INVALID_ARGUMENT, "refused"],
    [grpc.status.FAILED_PRECONDITION, "packages"],
  ] as const)
    test(`${grpc.status[refusal]} in answer to Hello ends the actor with the learner's message`, async () => {
      const { ended } = await setUp({ learner: { refusal } });
      await assert.rejects(ended, { code, message: /go away/ });
    });

  test("an actor for one execution drains with its first lease and ends when the result is handed in", async () => {
    const { learner, ended, started } = await setUp({ maxExecutions: 1 });
    assert.equal((await learner.next("ready")).freeSlots, 1, "of two slots");
    const attempt = learner.lease("e1");
    const running = await started("e1");
    running.end(completed(Buffer.from("x")));
    await learner.next("chunk");
    learner.send({ ack: { attempt, accepted: true, reason: "accepted" } });
    await learner.next("drained");
    assert.equal(await ended, "drained");
    assert.equal(learner.count("ready"), 1);
  });

  test("a drained actor whose learner stays away gives up its results after a while", async () => {
    const { learner, client, ended, started } = await setUp({ handInSeconds: 0.1 });
    await learner.next("ready");
    learner.lease("e1");
    const running = await started("e1");
    learner.kill();
    await sleep(50);
    running.end(completed());
    client.drain("SIGTERM");
    assert.equal(await ended, "drained");
  });
});
