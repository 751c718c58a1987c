/** Tests submissions whose bytes differ from their announcement. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { deflateSync } from "node:zlib";
import { status as code } from "@grpc/grpc-js";
import { leased, newActor } from "./learners.fixture.ts";
import { type Corruption, LIMITS, within } from "./server.fixture.ts";

describe("submissions that differ from their header", () => {
  const bomb = deflateSync(Buffer.alloc(2 ** 26));
  const damaged: Record<string, Corruption> = {
    "another digest": ({ info }) => (info.sha256 = "0".repeat(64)),
    "another text": ({ chunks }) => (chunks[0] = deflateSync("id,price\n9,9\n")),
    "no zlib": ({ chunks }) => (chunks[0] = Buffer.alloc(chunks[0].length)),
    "cut off": ({ chunks }) => (chunks[0] = chunks[0].subarray(0, -1)),
    "shorter than announced": ({ info }) => (info.bytes = 99),
  };
  for (const [name, corrupt] of Object.entries(damaged)) {
    test(`the learner asks again for a submission and then gives up the attempt: ${name}`, async () => {
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
    test(`a submission ends its own stream and attempt alone: ${name}`, async () => {
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
