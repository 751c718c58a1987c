import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { jsonLines } from "./watch-stream.ts";

async function read(
  pieces: Iterable<Buffer>,
  end: (stream: PassThrough) => void = (stream) => stream.end(),
  silenceSeconds = 60,
) {
  const stream = new PassThrough();
  const values: unknown[] = [];
  const reading = (async () => {
    for await (const value of jsonLines(stream as unknown as IncomingMessage, silenceSeconds)) values.push(value);
  })().catch((reason) => reason);
  for (const piece of pieces) {
    stream.write(piece);
    await turn(); // pieces written in one turn are read as one
  }
  end(stream);
  const error = await reading;
  return { values, error, destroyed: stream.destroyed };
}

test("The stream returns the values that were sent, wherever the bytes are cut", async () => {
  const piecewise = fc.asyncProperty(
    fc.array(fc.record({ type: fc.string({ unit: "binary" }), object: fc.jsonValue() }), { maxLength: 10 }),
    fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
    async (events, sizes) => {
      const bytes = Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
      const pieces: Buffer[] = [];
      for (let at = 0, i = 0; at < bytes.length; at += pieces.at(-1)!.length, i++) {
        pieces.push(bytes.subarray(at, at + sizes[i % sizes.length]!));
      }
      const { values, error } = await read(pieces);
      assert.equal(error, undefined);
      assert.deepEqual(values, JSON.parse(JSON.stringify(events)));
    },
  );
  await fc.assert(piecewise, { numRuns: 100 });
});

test("The stream returns whole values first, then its fault", async () => {
  const whole = Buffer.from('{"a":1}\n');
  const cases: [string, Buffer[], ((stream: PassThrough) => void) | undefined, string, RegExp][] = [
    [
      "an end inside a line",
      [whole, Buffer.from('{"b":')],
      undefined,
      "BrokenStream",
      /"\{\\"b\\":" is not a whole event/,
    ],
    ["garbage", [whole, Buffer.from("}{\n")], undefined, "BrokenStream", /"\}\{" is not a whole event/],
    ["silence", [whole], () => {}, "Silence", /no data for 0\.2 s/],
    [
      "a reset",
      [whole],
      (stream) => setImmediate(() => stream.destroy(Object.assign(new Error("reset"), { code: "ECONNRESET" }))),
      "ECONNRESET",
      /the connection broke: reset/,
    ],
  ];
  for (const [name, pieces, end, reason, message] of cases) {
    const { values, error, destroyed } = await read(pieces, end, 0.2);
    assert.deepEqual(values, [{ a: 1 }], name);
    assert.deepEqual([error.status, error.reason, destroyed], [0, reason, true], name);
    assert.match(error.message, message, name);
  }
});
