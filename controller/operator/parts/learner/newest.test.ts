import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { readNewest } from "./newest.ts";

/** Emits numbers from 1 on, each as a message of `bytes` bytes, as fast as they are read. */
function numbers(bytes: number, last = Number.POSITIVE_INFINITY) {
  let sent = 0;
  const stream = new Readable({
    objectMode: true,
    read() {
      void setImmediate().then(() => this.push(sent >= last ? null : Buffer.from(String(++sent).padStart(bytes, "0"))));
    },
  });
  return { stream, sent: () => sent };
}

/** Waits, without the clock, until the stream is paused or has ended. */
async function untilQuiet(stream: Readable): Promise<void> {
  while (!stream.isPaused() && !stream.readableEnded) await setImmediate();
}

test("The first message is handled at once, then the newest of the messages in between", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { stream, sent } = numbers(8, 50);
  const handled: number[] = [];
  readNewest(stream, 0.1, (message) => handled.push(Number(message)));
  await untilQuiet(stream);
  assert.deepEqual([handled, sent()], [[1], 50]);
  t.mock.timers.tick(99);
  assert.deepEqual(handled, [1]);
  t.mock.timers.tick(1);
  assert.deepEqual(handled, [1, 50]);
});

for (const [what, bytes, most] of [
  ["short", 8, 100],
  ["long", 300_000, 4],
] as const)
  test(`A flood of ${what} messages is slowed down`, async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const { stream, sent } = numbers(bytes);
    const handled: number[] = [];
    const reader = readNewest(stream, 0.1, (message) => handled.push(Number(message)));
    for (let tenths = 0; tenths < 10; tenths++) {
      await untilQuiet(stream);
      t.mock.timers.tick(100);
    }
    await untilQuiet(stream);
    reader.end();
    assert.ok(handled.length >= 11 && handled.length <= 12, `${handled.length} handled`);
    // Messages that were read, and messages in the stream's buffers.
    assert.ok(sent() <= 12 * most + 2 * stream.readableHighWaterMark, `${sent()} read`);
    assert.deepEqual(
      handled,
      handled.toSorted((a, b) => a - b),
    );
    stream.destroy();
  });

test("At the end the newest message is handled without waiting, also from a paused stream", async () => {
  const { stream } = numbers(8, 130);
  const handled: number[] = [];
  const reader = readNewest(stream, 60, (message) => handled.push(Number(message)));
  await untilQuiet(stream);
  reader.end();
  assert.equal(handled[0], 1);
  assert.ok(handled.length === 2 && handled[1]! > 100, `${handled}`);
});
