import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { packed } from "./packing.ts";

const TOKENS = 100;
const lengths = fc.array(fc.integer({ min: 1, max: TOKENS + 20 }), { maxLength: 40 });
const workers = fc.integer({ min: 1, max: 5 });
const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);
const sizes = (passes: readonly number[][], of: readonly number[]) =>
  passes.map((pass) => sum(pass.map((i) => of[i]!)));

test("every row is in one pass, and no pass with several rows is too long", () => {
  fc.assert(
    fc.property(lengths, workers, (of, count) => {
      const passes = packed(of, TOKENS, count);
      assert.deepEqual(
        passes.flat().sort((a, b) => a - b),
        [...of.keys()],
      );
      for (const pass of passes) assert.ok(pass.length === 1 || sum(pass.map((i) => of[i]!)) <= TOKENS);
    }),
  );
});

test("the lengths of passes, longest first, do not depend on the order of the rows", () => {
  fc.assert(
    fc.property(
      lengths.chain((of) => fc.tuple(fc.constant(of), fc.shuffledSubarray(of, { minLength: of.length }))),
      workers,
      ([of, shuffled], count) => {
        const found = sizes(packed(of, TOKENS, count), of);
        assert.deepEqual(sizes(packed(shuffled, TOKENS, count), shuffled), found);
        assert.deepEqual(
          found,
          found.toSorted((a, b) => b - a),
        );
      },
    ),
  );
});

test("any two passes of one worker have more tokens than one pass holds, so less than half of all room is empty", () => {
  fc.assert(
    fc.property(lengths, (of) => {
      const [shortest = TOKENS, next = TOKENS] = sizes(packed(of, TOKENS), of).reverse();
      assert.ok(shortest + next > TOKENS);
    }),
  );
});

/** Rows that were cut from full passes: the fewest passes are known. */
const cut = fc.array(fc.array(fc.integer({ min: 1, max: TOKENS - 1 }), { maxLength: 4 }), {
  minLength: 1,
  maxLength: 12,
});

test("there are at most 11/9 of the fewest possible passes and one more", () => {
  fc.assert(
    fc.property(cut, (places) => {
      const of = places.flatMap((borders) => {
        const ends = [...new Set(borders), TOKENS].sort((a, b) => a - b);
        return ends.map((end, i) => end - (ends[i - 1] ?? 0));
      });
      assert.ok(packed(of, TOKENS).length <= Math.floor((11 * places.length + 6) / 9));
    }),
  );
});

test("several workers get equally many passes of about the same length, unless these would be too long", () => {
  const of = [60, 50, 40, 30, 20, 10];
  assert.deepEqual(packed(of, TOKENS), [[0, 2], [1, 3, 4], [5]]);
  assert.deepEqual(sizes(packed(of, TOKENS, 2), of), [60, 50, 50, 50]);
  assert.deepEqual(sizes(packed([40, 40, 40, 40], TOKENS, 4), [40, 40, 40, 40]), [40, 40, 40, 40]);
  assert.deepEqual(packed([5], TOKENS, 4), [[0]]);
  assert.deepEqual(packed([], TOKENS, 4), []);
  // shortest first would put 60, 30 and 30 together
  const tight = [70, 60, 40, 30];
  assert.deepEqual(sizes(packed(tight, TOKENS, 2), tight), [100, 100]);
});
