import assert from "node:assert/strict";
import { test } from "node:test";
import { comparisons, type Finished, standingOf } from "./page.ts";
import { estimate, lowerBound, mean, pairedDifference, show, verdictOf } from "./statistics.ts";

const bySeed = (values: number[], from = 0) => new Map(values.map((value, index) => [from + index, value]));

test("An interval covers the mean and shrinks with agreement; too few seeds give no interval", () => {
  const { mean, interval } = estimate([1, 2, 3, 4, 5]);
  assert.equal(mean, 3);
  // A resample of five of 1..5 has a mean outside of 1.6 to 4.4 in less than 5 % of the cases: 12 of 3125 are above 4.6.
  assert.ok(interval![0] >= 1.4 && interval![0] <= 2 && interval![1] >= 4 && interval![1] <= 4.6, String(interval));
  assert.deepEqual(estimate([2, 2, 2, 2, 2]).interval, [2, 2]);
  assert.equal(estimate([1, 2, 3, 4]).interval, null);
  assert.equal(show(estimate([2])), "2.00 (1 seed)");
  assert.equal(show(estimate([1, 2])), "1.50 (2 seeds)");
  assert.equal(show(estimate([])), "-");
});

test("Differences are taken seed by seed, over the seeds that both arms have", () => {
  // Seeds differ far more than arms do, so the difference is only visible in pairs.
  const control = bySeed([10, 20, 30, 40, 50, 60]);
  const treated = bySeed([21.1, 31, 41.2, 51.1, 61, 99], 1);
  const difference = pairedDifference(treated, control);
  assert.deepEqual(difference.seeds, [1, 2, 3, 4, 5]);
  assert.ok(Math.abs(difference.mean - 1.08) < 1e-9, String(difference.mean));
  assert.equal(verdictOf(difference), "higher");
  assert.equal(verdictOf(pairedDifference(control, treated)), "lower");
});

test("Fewer than five seeds, or an interval around 0, support no claim", () => {
  const apart = (count: number) => pairedDifference(bySeed(Array(count).fill(2)), bySeed(Array(count).fill(1)));
  assert.equal(verdictOf(apart(4)), "too few seeds");
  assert.equal(verdictOf(apart(5)), "higher");
  assert.equal(verdictOf(estimate([-1, 1, -2, 2, 0.5])), "no difference seen");
});

test("Results that contradict the paper come first", () => {
  const standings = [
    standingOf("lower", "higher"),
    standingOf("higher", "none"),
    standingOf("no difference seen", "higher"),
    standingOf("no difference seen", "none"),
    standingOf("too few seeds", "none"),
    standingOf("higher", "higher"),
  ];
  assert.deepEqual(standings, ["against", "against", "neither", "for", "open", "for"]);

  const runs = ["a", "b"].flatMap((arm) =>
    [0, 1, 2, 3, 4].map(
      (seed): Finished => ({
        ...{ world: "w", arm, seed },
        facts: { iterations: [], evaluation: { valid: arm === "a" ? 1 : 0.5 } as never },
      }),
    ),
  );
  const measure = { name: "valid", digits: 2, of: ({ facts: { evaluation } }: Finished) => evaluation!.valid };
  const pair = { world: "w", treated: "a", control: "b", measure };
  const judged = comparisons(runs, [
    { ...pair, expected: "higher" },
    { ...pair, expected: "lower" },
  ]);
  assert.deepEqual(
    judged.map(({ standing, verdict, difference }) => [standing, verdict, difference.mean]),
    [
      ["against", "higher", 0.5],
      ["for", "higher", 0.5],
    ],
  );
});

const BOUNDS: [name: string, treated: number[][], control: number[][], low: number, high: number][] = [
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

for (const [name, treated, control, low, high] of BOUNDS) {
  test(`The lower bound is right: ${name}`, () => {
    const bound = lowerBound(treated, control, 2000);
    assert.ok(bound >= low && bound <= high, String(bound));
    assert.ok(bound <= mean(treated.map(mean)) - mean(control.map(mean)));
    assert.equal(lowerBound(treated, control, 2000), bound);
  });
}
