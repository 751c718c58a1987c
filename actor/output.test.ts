import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { OutputCapture } from "./output.ts";

const cases: [name: string, kept: number, chunks: string[], expected: string][] = [
  ["nothing", 4, [], ""],
  ["less than the first part", 4, ["ab"], "ab"],
  ["exactly the first part", 4, ["abcd"], "abcd"],
  ["both parts, nothing missing", 4, ["abcdefgh"], "abcdefgh"],
  ["one byte missing", 4, ["abcdefghi"], "abcd\n[... 1 bytes left out ...]\nfghi"],
  ["in small chunks", 2, ["a", "b", "c", "d", "e"], "ab\n[... 1 bytes left out ...]\nde"],
  ["a large chunk after small ones", 2, ["a", "bcdefgh"], "ab\n[... 4 bytes left out ...]\ngh"],
];
for (const [name, kept, chunks, expected] of cases)
  test(`the capture keeps the first and the last part: ${name}`, () => {
    const capture = new OutputCapture(kept);
    for (const chunk of chunks) capture.push(Buffer.from(chunk));
    assert.equal(capture.bytes().toString(), expected);
    assert.equal(capture.totalBytes, chunks.join("").length);
  });

test("the capture keeps the first and the last part of any chunks", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 20 })), fc.integer({ min: 1, max: 50 }), (chunks, kept) => {
      const capture = new OutputCapture(kept);
      for (const chunk of chunks) capture.push(Buffer.from(chunk));
      const all = Buffer.from(chunks.join(""));
      const text = capture.bytes();
      if (all.length <= 2 * kept) assert.deepEqual(text, all);
      else {
        assert.deepEqual(text.subarray(0, kept), all.subarray(0, kept));
        assert.deepEqual(text.subarray(-kept), all.subarray(-kept));
      }
    }),
  );
});

test("output that comes byte by byte takes little processor time", () => {
  const capture = new OutputCapture(16 << 10);
  const byte = Buffer.from("a");
  const before = process.threadCpuUsage();
  for (let sent = 0; sent < 1 << 18; sent++) capture.push(byte);
  const { user, system } = process.threadCpuUsage(before);
  assert.equal(capture.totalBytes, 1 << 18);
  assert.ok(user + system < 500_000, `${(user + system) / 1000} ms`);
});
