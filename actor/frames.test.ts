import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { encodeFrame, FrameReader } from "./frames.ts";

const frames = fc.array(
  fc.record({ kind: fc.constantFrom("S", "O", "X", "F"), payload: fc.uint8Array({ maxLength: 300 }) }),
  { maxLength: 20 },
);

/** Joins output into one piece, however many frames it came in. */
function joined(list: { kind: string; payload: Uint8Array }[]) {
  const whole: [kind: string, bytes: number[]][] = [];
  for (const { kind, payload } of list)
    if (kind === "O" && whole.at(-1)?.[0] === "O") whole.at(-1)![1].push(...payload);
    else if (kind !== "O" || payload.length > 0) whole.push([kind, [...payload]]);
  return whole;
}

test("frames are decoded however their bytes are cut", () => {
  fc.assert(
    fc.property(frames, fc.integer({ min: 1, max: 100 }), (list, chunkBytes) => {
      const bytes = Buffer.concat(list.map(({ kind, payload }) => encodeFrame(kind, payload)));
      const reader = new FrameReader();
      const read = [];
      for (let at = 0; at < bytes.length; at += chunkBytes)
        read.push(...reader.push(bytes.subarray(at, at + chunkBytes)));
      assert.deepEqual(joined(read), joined(list));
    }),
  );
});

test("a frame above 1 MiB is refused at its header", () => {
  const header = Buffer.from([0x4f, 0x00, 0x10, 0x00, 0x01]);
  assert.throws(() => [...new FrameReader().push(header)], RangeError);
});

test("output is passed on as it arrives, other frames once they are complete", () => {
  const reader = new FrameReader();
  const bytes = Buffer.concat([encodeFrame("O", "abcdef"), encodeFrame("D", "gh")]);
  const steps = [0, 3, 7, 12, 17].map((start, index, starts) =>
    [...reader.push(bytes.subarray(start, starts[index + 1]))].map(({ kind, payload }) => `${kind} ${payload}`),
  );
  assert.deepEqual(steps, [[], ["O ab"], ["O cdef"], [], ["D gh"]]);
});

test("a frame that comes byte by byte costs no more than its bytes", () => {
  const bytes = encodeFrame("D", Buffer.alloc(1 << 20, 7));
  const reader = new FrameReader();
  const before = process.memoryUsage().rss;
  const began = process.cpuUsage();
  const read = [];
  for (let at = 0; at < bytes.length; at++) read.push(...reader.push(bytes.subarray(at, at + 1)));
  const { user, system } = process.cpuUsage(began);
  assert.deepEqual(
    read.map(({ kind, payload }) => [kind, payload.length, payload.every((byte) => byte === 7)]),
    [["D", 1 << 20, true]],
  );
  assert.ok(user + system < 3e6, `${(user + system) / 1e6} s`);
  assert.ok(process.memoryUsage().rss - before < 150 << 20, `${process.memoryUsage().rss - before} bytes`);
});
