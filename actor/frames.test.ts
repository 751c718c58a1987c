import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { encodeFrame, FrameReader } from "./frames.ts";

const frames = fc.array(
  fc.record({ kind: fc.constantFrom("S", "O", "X", "F"), payload: fc.uint8Array({ maxLength: 300 }) }),
  { maxLength: 20 },
);

test("what was encoded is read, however the bytes are cut", () => {
  fc.assert(
    fc.property(frames, fc.integer({ min: 1, max: 100 }), (list, chunkBytes) => {
      const bytes = Buffer.concat(list.map(({ kind, payload }) => encodeFrame(kind, payload)));
      const reader = new FrameReader();
      const read = [];
      for (let at = 0; at < bytes.length; at += chunkBytes)
        read.push(...reader.push(bytes.subarray(at, at + chunkBytes)));
      assert.deepEqual(
        read.map(({ kind, payload }) => [kind, [...payload]]),
        list.map(({ kind, payload }) => [kind, [...payload]]),
      );
    }),
  );
});

test("a frame above 1 MiB is refused at its header", () => {
  const header = Buffer.from([0x4f, 0x00, 0x10, 0x00, 0x01]);
  assert.throws(() => [...new FrameReader().push(header)], RangeError);
});
