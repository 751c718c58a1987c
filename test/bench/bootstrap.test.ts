import assert from "node:assert/strict";
import { test } from "node:test";
import { lowerBound, mean } from "./bootstrap.ts";

const cases: [name: string, treated: number[][], control: number[][], low: number, high: number][] = [
  [
    "no spread: the difference itself",
    [
      [3, 3],
      [3, 3],
    ],
    [
      [1, 1],
      [1, 1],
    ],
    2,
    2,
  ],
  [
    "far apart, some spread",
    [
      [9, 10, 11],
      [10, 10, 10],
    ],
    [
      [0, 1, 2],
      [1, 1, 1],
    ],
    7.5,
    9,
  ],
  [
    "the same values",
    [
      [1, 2, 3],
      [1, 2, 3],
    ],
    [
      [1, 2, 3],
      [1, 2, 3],
    ],
    -1.5,
    -0.3,
  ],
  [
    "runs that differ count as runs, not as values",
    [
      [0, 0, 0],
      [10, 10, 10],
    ],
    [
      [4, 4, 4],
      [4, 4, 4],
    ],
    -4,
    -4,
  ],
];

for (const [name, treated, control, low, high] of cases) {
  test(`bootstrap: ${name}`, () => {
    const bound = lowerBound(treated, control, 2000);
    assert.ok(bound >= low && bound <= high, String(bound));
    assert.ok(bound <= mean(treated.map(mean)) - mean(control.map(mean)));
    assert.equal(lowerBound(treated, control, 2000), bound);
  });
}
