import assert from "node:assert/strict";
import test from "node:test";
import { areFinite, fromStored, type SafetensorsDType } from "./halves.ts";

for (const dtype of ["BF16", "F16"] as const)
  test(`areFinite finds each ${dtype} that is not finite, in both halves of a word`, () => {
    for (let half = 0; half < 2 ** 16; half++) {
      const finite = Number.isFinite(fromStored(dtype, Uint16Array.of(half).buffer)[0]);
      for (const halves of [
        [half, 0],
        [0, half],
      ])
        assert.equal(areFinite(dtype, wordsOf(Uint16Array.from(halves))), finite, `${dtype} 0x${half.toString(16)}`);
    }
  });

test("areFinite finds NaN and both infinities in F32, and no other number", () => {
  const finite = [0, -0, 1, -1, 3.4e38, -3.4e38, 1e-45, 65504, 65536, 1e5];
  assert.ok(areFinite("F32", wordsOf(Float32Array.from(finite))));
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
    for (let at = 0; at < finite.length; at++)
      assert.ok(!areFinite("F32", wordsOf(Float32Array.from(finite, (other, i) => (i === at ? value : other)))));
});

test("areFinite takes no words for finite, whatever the dtype", () => {
  for (const dtype of ["F32", "BF16", "F16"] satisfies SafetensorsDType[])
    assert.ok(areFinite(dtype, new Uint32Array(0)));
});

const wordsOf = (numbers: Uint16Array | Float32Array): Uint32Array => new Uint32Array(numbers.buffer);
