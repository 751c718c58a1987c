import assert from "node:assert/strict";
import { test } from "node:test";
import { balanced, evenParts, microBatches, tokenScale } from "./microbatches.ts";

const sequences = (lengths: [number, number][]) =>
  lengths.map(([prompt, response]) => ({ prompt: new Int32Array(prompt), response: new Int32Array(response) }));

const CASES: [name: string, lengths: [number, number][], sequences: number, tokens: number, groups: number[][]][] = [
  [
    "longest first, equal ones in order",
    [
      [1, 2],
      [5, 5],
      [1, 2],
    ],
    8,
    100,
    [[1, 0, 2]],
  ],
  [
    "at most so many sequences",
    [
      [1, 1],
      [1, 1],
      [1, 1],
    ],
    2,
    100,
    [[0, 1], [2]],
  ],
  [
    "padding counts as tokens",
    [
      [1, 9],
      [1, 1],
      [1, 1],
    ],
    8,
    20,
    [[0, 1], [2]],
  ],
  [
    "a long one goes alone",
    [
      [1, 1],
      [50, 50],
    ],
    8,
    20,
    [[1], [0]],
  ],
  [
    "empty responses are left out",
    [
      [3, 0],
      [1, 1],
    ],
    8,
    20,
    [[1]],
  ],
  ["nothing", [], 8, 20, []],
];

for (const [name, lengths, count, tokens, groups] of CASES) {
  test(name, () => assert.deepEqual(microBatches(sequences(lengths), { sequences: count, tokens }), groups));
}

test("what a token counts for adds up to the mean", () => {
  const batch = sequences([
    [1, 2],
    [1, 8],
  ]);
  assert.deepEqual(tokenScale(batch, { aggregation: "TokenMean" }), [1 / 10, 1 / 10]);
  assert.deepEqual(tokenScale(batch, { aggregation: "SeqMeanTokenMean" }), [1 / 4, 1 / 16]);
  const normalizer = { sequences: 10, tokens: 0 };
  assert.deepEqual(tokenScale(batch, { aggregation: "SeqMeanTokenMean", normalizer }), [1 / 20, 1 / 80]);
  const sumNorm = { aggregation: "SeqMeanTokenSumNorm" as const };
  assert.deepEqual(tokenScale(batch, { ...sumNorm, maxResponseTokens: 16 }), [1 / 32, 1 / 32]);
  assert.throws(() => tokenScale(batch, sumNorm), { code: "step", message: /needs maxResponseTokens/ });
});

test("for ranks the groups are cut alike, whether there is little or much", () => {
  const cut = (count: number, ranks: number) =>
    microBatches(sequences(Array.from({ length: count }, () => [5, 5])), { sequences: 100, tokens: 80, ranks }).map(
      ({ length }) => length,
    );
  assert.deepEqual(cut(8, 1), [8]);
  assert.deepEqual(cut(8, 2), [4, 4]);
  assert.deepEqual(cut(17, 1), [8, 8, 1]);
  assert.deepEqual(cut(20, 2), [5, 5, 5, 5]);
  assert.deepEqual(cut(1, 4), [1]);
});

test("each next group goes to the rank that has the least to do", () => {
  assert.deepEqual(balanced([9, 5, 4, 3], 2), [
    [0, 3],
    [1, 2],
  ]);
  assert.deepEqual(balanced([1], 3), [[0], [], []]);
  assert.deepEqual(balanced([], 2), [[], []]);
});

test("prompts are divided evenly, equal ones side by side", () => {
  const prompts = [1, 2, 1, 3, 2, 1, 4].map((token) => Int32Array.of(token));
  assert.deepEqual(evenParts(prompts, 2), [
    [0, 2, 5, 1],
    [4, 3, 6],
  ]);
  assert.deepEqual(evenParts(prompts.slice(0, 1), 2), [[0], []]);
});
