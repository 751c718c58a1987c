import assert from "node:assert/strict";
import { test } from "node:test";
import { overlongPenalty } from "./overlong.ts";

/** DAPO's own numbers: 20,480 tokens, 4,096 of them the buffer (arXiv 2503.14476, section 4.1). */
const DAPO = { overlongPenalty: { bufferTokens: 4096, factor: 1 } };

const cases: [name: string, tokens: number, truncated: boolean | undefined, penalty: number][] = [
  ["short", 10, false, 0],
  ["up to the buffer", 16384, false, 0],
  ["a quarter into it", 16384 + 1024, false, 0.25],
  ["to its end", 20480, false, 1],
  ["cut", 20480, true, 1],
  ["cut in a store that does not say so", 20480, undefined, 1],
  ["cut, however long", 12000, true, 1],
];
for (const [name, tokens, truncated, penalty] of cases)
  test(`the overlong penalty is taken from a response: ${name}`, () => {
    const sample = { response: { length: tokens }, truncated };
    const doubled = { overlongPenalty: { bufferTokens: 4096, factor: 2 } };
    assert.equal(overlongPenalty(sample, DAPO, 20480), penalty);
    assert.equal(overlongPenalty(sample, doubled, 20480), 2 * penalty);
    assert.equal(overlongPenalty(sample, {}, 20480), 0, "off");
  });
