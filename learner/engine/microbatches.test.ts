import assert from "node:assert/strict";
import { test } from "node:test";
import { balanced, dealtPrompts, type MicroBatch, microBatches, tokenScale } from "./microbatches.ts";

const sequences = (lengths: [number, number][]) =>
  lengths.map(([prompt, response]) => ({ prompt: new Int32Array(prompt), response: new Int32Array(response) }));

/** Every sequence is a row. */
const APART = { rowTokens: 0, attentionLength: 100 };
const flat = (groups: readonly MicroBatch[]) => groups.map((group) => group.flat());

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
      [1, 10],
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
  test(`sequences are grouped into micro-batches: ${name}`, () => {
    const found = microBatches(sequences(lengths), { ...APART, sequences: count, tokens });
    assert.deepEqual(flat(found), groups);
    assert.ok(found.flat().every(({ length }) => length === 1));
  });
}

test("rows without padding fill passes with tokens of whatever rows", () => {
  const batch = sequences([
    [1, 60],
    [1, 50],
    [1, 10],
    [1, 40],
    [2, 20],
    [1, 0],
  ]);
  const limits = { ...APART, sequences: Number.POSITIVE_INFINITY, tokens: 100 };
  assert.deepEqual(flat(microBatches(batch, { ...limits, packs: true })), [
    [0, 3],
    [1, 4, 2],
  ]);
  assert.deepEqual(flat(microBatches(batch, limits)), [[0], [1, 3], [4, 2]]);
});

test("without padding a row is as long as a pass, so that a prompt is computed once, or shorter where it divides more evenly", () => {
  const batch = Array.from({ length: 8 }, () => ({ prompt: new Int32Array(10), response: new Int32Array(20) }));
  const limits = { packs: true, sequences: Number.POSITIVE_INFINITY, attentionLength: Number.POSITIVE_INFINITY };
  const lengths = { tokens: 9 + 8 * 20, rowTokens: 9 + 2 * 20 };
  assert.deepEqual(microBatches(batch, { ...limits, ...lengths }), [[[0, 1, 2, 3, 4, 5, 6, 7]]]);
  assert.deepEqual(microBatches(batch, { ...limits, ...lengths, workers: 2 }), [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]);
  const shortPass = { tokens: 60, rowTokens: 60 };
  assert.deepEqual(microBatches(batch, { ...limits, ...shortPass }), [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]]]);
});

test("the tokens' weights add up to the aggregation's mean", () => {
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

test("groups for several workers have equal sizes", () => {
  const cut = (count: number, workers: number) =>
    microBatches(sequences(Array.from({ length: count }, () => [6, 5])), {
      ...APART,
      ...{ sequences: 100, tokens: 80, workers },
    }).map(({ length }) => length);
  assert.deepEqual(cut(8, 1), [8]);
  assert.deepEqual(cut(8, 2), [4, 4]);
  assert.deepEqual(cut(17, 1), [8, 8, 1]);
  assert.deepEqual(cut(20, 2), [5, 5, 5, 5]);
  assert.deepEqual(cut(1, 4), [1]);
});

test("each group goes to the worker that has the least to do", () => {
  assert.deepEqual(balanced([9, 5, 4, 3], 2), [
    [0, 3],
    [1, 2],
  ]);
  assert.deepEqual(balanced([1], 3), [[0], [], []]);
  assert.deepEqual(balanced([], 2), [[], []]);
});

test("workers get equal numbers of prompts, and equal prompts stay together", () => {
  const prompts = [1, 2, 1, 3, 2, 1, 4].map((token) => Int32Array.of(token));
  assert.deepEqual(dealtPrompts(prompts, [0, 0]), [
    [0, 2, 5, 1],
    [4, 3, 6],
  ]);
  assert.deepEqual(dealtPrompts(prompts.slice(0, 1), [0, 0]), [[0], []]);
  assert.deepEqual(dealtPrompts(prompts.slice(0, 1), [3, 2]), [[], [0]]);
  assert.deepEqual(dealtPrompts(prompts, [3, 0]), [
    [3, 6],
    [0, 2, 5, 1, 4],
  ]);
  assert.deepEqual(dealtPrompts(prompts.slice(0, 2), [9, 0, 4]), [[], [0, 1], []]);
});

/** Two prompts of 10 tokens, four responses to the first and one to the second. */
const SHARED = [
  ...[5, 20, 5, 10].map((response) => ({ prompt: new Int32Array(10), response: new Int32Array(response) })),
  { prompt: new Int32Array(10).fill(1), response: new Int32Array(7) },
];
const PLENTY = { sequences: 100, tokens: 1000, rowTokens: 1000, attentionLength: 1e9 };

test("responses to one prompt make a row, longest first", () => {
  assert.deepEqual(microBatches(SHARED, PLENTY), [[[1, 3, 0, 2], [4]]]);
});

test("a row has at most rowTokens tokens and at most the sequences of a micro-batch", () => {
  assert.deepEqual(microBatches(SHARED, { ...PLENTY, rowTokens: 9 + 35 }), [[[1, 3, 0], [4], [2]]]);
  assert.deepEqual(microBatches(SHARED, { ...PLENTY, rowTokens: 9 + 39 }), [[[1, 3, 0], [4], [2]]]);
  assert.deepEqual(microBatches(SHARED, { ...PLENTY, rowTokens: 9 + 40 }), [[[1, 3, 0, 2], [4]]]);
  // a response too long for the first row goes into the second
  assert.deepEqual(microBatches(SHARED, { ...PLENTY, rowTokens: 9 + 25 }), [[[1, 0], [3, 2], [4]]]);
  assert.deepEqual(microBatches(SHARED, { ...PLENTY, sequences: 2 }), [[[1, 3]], [[0, 2]], [[4]]]);
  assert.deepEqual(microBatches(SHARED, { ...PLENTY, sequences: 3 }), [[[1, 3, 0]], [[4], [2]]]);
  // more than fit into one pass, like a long sequence
  assert.deepEqual(microBatches(SHARED, { ...PLENTY, tokens: 20 }), [[[1, 3, 0, 2]], [[4]]]);
});

test("a row goes into a pass only if all of its sequences fit into it", () => {
  const rows = [3, 1, 2].flatMap((count, prompt) =>
    Array.from({ length: count }, () => ({ prompt: new Int32Array(10).fill(prompt), response: new Int32Array(5) })),
  );
  const passes = microBatches(rows, { ...PLENTY, sequences: 4 });
  assert.deepEqual(passes, [[[0, 1, 2]], [[4, 5], [3]]]);
});

test("responses share a prompt where that saves more than attention over the other responses costs", () => {
  const of = (prompt: number, response: number) =>
    sequences([
      [prompt, response],
      [prompt, response],
    ]);
  // 9 + 10 tokens and twice that: 29 (1 + 29 / n) is less than 2 x 19 (1 + 19 / n) from n = 14 on
  assert.deepEqual(microBatches(of(10, 10), { ...PLENTY, attentionLength: 13 }), [[[0], [1]]]);
  assert.deepEqual(microBatches(of(10, 10), { ...PLENTY, attentionLength: 14 }), [[[0, 1]]]);
  // nothing can be saved: the last token of a prompt belongs to the response
  assert.deepEqual(microBatches(of(1, 10), PLENTY), [[[0], [1]]]);
});
