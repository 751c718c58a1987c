import assert from "node:assert/strict";
import { test } from "node:test";
import { permutation, seedFor, uniforms } from "./random.ts";

test("a stream is a function of seed and name alone", () => {
  const take = (next: () => number) => Array.from({ length: 5 }, next);
  assert.deepEqual(take(uniforms(7, "prompt", 3)), take(uniforms(7, "prompt", 3)));
  assert.notDeepEqual(take(uniforms(7, "prompt", 3)), take(uniforms(7, "prompt", 4)));
  assert.notDeepEqual(take(uniforms(7, "prompt", 3)), take(uniforms(8, "prompt", 3)));
  assert.notDeepEqual(take(uniforms(7, "a", "b")), take(uniforms(7, "ab")));
});

test("numbers are uniform: ten bins of 100,000 draws lie within 5 standard deviations", () => {
  const next = uniforms(0, "uniformity");
  const bins = new Array(10).fill(0);
  for (let i = 0; i < 100_000; i++) bins[Math.floor(next() * 10)]++;
  for (const count of bins) assert.ok(Math.abs(count - 10_000) < 5 * Math.sqrt(9_000), String(bins));
});

test("seedFor gives safe integers, permutation gives each index once", () => {
  assert.ok(Number.isSafeInteger(seedFor(1, "x")));
  assert.deepEqual(
    permutation(50, uniforms(1, "p")).sort((a, b) => a - b),
    Array.from({ length: 50 }, (_, i) => i),
  );
});
