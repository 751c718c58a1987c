/** Tests the limits of what one actor may hold and send. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { status as code } from "@grpc/grpc-js";
import { CHUNK_BYTES } from "../../proto/service.ts";
import { newSample } from "../store/store.fixture.ts";
import { leased, newActor, newLearner, until } from "./learners.fixture.ts";
import { type Attempt, TestActor, within } from "./server.fixture.ts";

describe("limits of an actor", { concurrency: 4 }, () => {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  /** Announces an incompressible submission of 1 MiB and starts the upload. */
  const begin = (actor: TestActor, attempt: Attempt) => {
    const info = { bytes: 2 ** 20, compressedBytes: 2 ** 20, chunks: 4, sha256: "0".repeat(64) };
    actor.send({ result: { attempt, outcome: 1, isolationLevel: "none", submission: info } });
    actor.send({ chunk: { attempt, index: 0, data: chunk } });
  };

  test("a stream's unfinished submissions hold limited memory, and none once their leases end", async () => {
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

  test("the actor that holds more makes room for the actor that holds less", async () => {
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

  test("all streams' submissions hold limited memory, and a refused submission is taken later", async () => {
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
    assert.equal(learner.server.actors()[0]?.connected, true, "fewer messages are no flood");
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

  test("one certificate may have only a few streams without a Hello", async () => {
    const { address } = await newLearner();
    const streams = Array.from({ length: 5 }, () => new TestActor(address));
    assert.equal((await within(streams[0].status, "the end of the first")).code, code.ABORTED);
    await streams[4].hello();
  });
});
