import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { type Guard, guardsOf } from "./guards.ts";
import type { MetricName } from "./metrics.ts";

const numbers = (rows: number, value: (row: number) => number) =>
  Float64Array.from({ length: rows }, (_, row) => value(row));
/** Returns pseudo-random numbers from 0 to 1 that are the same in every run. */
const draw = (row: number, salt = 0) => Math.abs(Math.sin(12.9898 * (row + 1) + 78.233 * salt) * 43758.5453) % 1;
const texts = (rows: number, text: (row: number) => string) => Array.from({ length: rows }, (_, row) => text(row));

type Column = Float64Array | readonly string[];
/** Returns the flags of a submission with one target column and an imperfect score. */
const flags = (metric: MetricName, truth: Column, predicted: Column, sample?: Column): Guard[] =>
  guardsOf(0.3, metric, [predicted], [truth], sample && [sample]);
const changed = (column: Float64Array, rows: number, value: number): Float64Array =>
  column.map((known, row) => (row < rows ? value : known));

const prices = numbers(200, (row) => 10 + 90 * draw(row));
const labels = numbers(200, (row) => Math.floor(draw(row) * 4));
const frauds = numbers(1000, (row) => Number(row % 200 === 7));
const sample = numbers(200, (row) => row % 7);

const CASES: [name: string, guards: Guard[], expected: Guard[]][] = [
  [
    "one prediction",
    flags(
      "MAE",
      prices,
      numbers(200, () => 50),
    ),
    ["constant"],
  ],
  [
    "one prediction and another in one row",
    flags(
      "MAE",
      prices,
      changed(
        numbers(200, () => 50),
        1,
        60,
      ),
    ),
    ["constant"],
  ],
  [
    "one prediction and others in 1 % of the rows",
    flags(
      "MAE",
      prices,
      changed(
        numbers(200, () => 50),
        2,
        60,
      ),
    ),
    ["constant"],
  ],
  [
    "one prediction and others in more rows",
    flags(
      "MAE",
      prices,
      changed(
        numbers(200, () => 50),
        3,
        60,
      ),
    ),
    [],
  ],
  [
    "one prediction with noise",
    flags(
      "MAE",
      prices,
      numbers(200, (row) => 50 + 0.01 * draw(row)),
    ),
    ["constant"],
  ],
  [
    "one prediction with noise and another in one row",
    flags(
      "MAE",
      prices,
      changed(
        numbers(200, (row) => 50 + 0.01 * draw(row)),
        1,
        9,
      ),
    ),
    ["constant"],
  ],
  [
    "one probability with noise",
    flags(
      "LogLoss",
      frauds,
      numbers(1000, (row) => 0.005 + 1e-5 * draw(row)),
    ),
    ["constant"],
  ],
  [
    "a weak model's predictions",
    flags(
      "RMSE",
      prices,
      numbers(200, (row) => 50 + 0.01 * (prices[row]! - 50)),
    ),
    [],
  ],
  [
    "values far from 0 that differ little",
    flags(
      "MAE",
      prices.map((price) => 1e6 + price),
      prices.map((price) => 1e6 + price / 2),
    ),
    [],
  ],
  ["a few huge answers", flags("MAE", changed(prices, 1, 1e12), prices), []],
  [
    "values in an order of noise",
    flags(
      "RocAuc",
      labels.map((label) => Number(label > 1)),
      numbers(200, (row) => 0.5 + 1e-9 * draw(row)),
    ),
    [],
  ],
  [
    "one label",
    flags(
      "Accuracy",
      labels,
      numbers(200, () => 2),
    ),
    ["constant"],
  ],
  [
    "one label, and another in one row",
    flags(
      "QuadraticWeightedKappa",
      labels,
      changed(
        numbers(200, () => 2),
        1,
        3,
      ),
    ),
    ["constant"],
  ],
  [
    "labels with large numbers",
    flags(
      "Accuracy",
      labels.map((label) => 1e6 * label),
      labels.map((label) => 1e6 + label),
    ),
    [],
  ],
  [
    "one text",
    flags(
      "WordJaccard",
      texts(200, (row) => `a ${row}`),
      texts(200, () => "a"),
    ),
    ["constant"],
  ],
  [
    "one text, and another in one row",
    flags(
      "WordJaccard",
      texts(200, (row) => `a ${row}`),
      texts(200, (row) => (row === 0 ? "b" : "a")),
    ),
    ["constant"],
  ],
  ["the sample", flags("MAE", prices, sample, sample), ["sampleSubmission"]],
  ["the sample, but for one row", flags("MAE", prices, changed(sample, 1, 50), sample), ["sampleSubmission"]],
  [
    "the sample with noise",
    flags(
      "MAE",
      prices,
      sample.map((value, row) => value + 0.01 * draw(row)),
      sample,
    ),
    ["sampleSubmission"],
  ],
  ["half of the sample", flags("MAE", prices, changed(sample, 100, 50), sample), []],
  [
    "all frauds, in a sample without fraud",
    flags(
      "F1",
      frauds,
      frauds,
      numbers(1000, () => 0),
    ),
    [],
  ],
  [
    "one fraud of five, as from an honest model",
    flags(
      "F1",
      frauds,
      numbers(1000, (row) => Number(row === 7)),
      numbers(1000, () => 0),
    ),
    [],
  ],
  [
    "no fraud",
    flags(
      "F1",
      frauds,
      numbers(1000, () => 0),
      numbers(1000, () => 0),
    ),
    ["sampleSubmission", "constant"],
  ],
  [
    "few rows",
    flags(
      "MAE",
      numbers(9, (row) => row),
      changed(
        numbers(9, () => 5),
        1,
        6,
      ),
    ),
    [],
  ],
];
describe("guards", () => {
  for (const [name, guards, expected] of CASES)
    test(`guards judge a submission of ${name}`, () => assert.deepEqual(guards, expected));

  test("a row of several columns differs if one of its columns differs", () => {
    const truth = [0, 1, 2].map((c) => numbers(300, (row) => Number(Math.floor(3 * draw(row)) === c)));
    const third = [0, 1, 2].map(() => numbers(300, () => 1 / 3));
    assert.deepEqual(guardsOf(1, "LogLoss", third, truth, undefined), ["constant"]);
    // Each column changes in 2 of 300 rows, 6 rows together.
    const six = third.map((column, c) => column.map((value, row) => (Math.floor(row / 2) === c ? 0.9 : value)));
    assert.deepEqual(guardsOf(1, "LogLoss", six, truth, undefined), []);
  });

  test("a submission is flagged if any 99 % of its rows have one prediction, and not at 98 %", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 20, max: 2000 }),
        fc.double({ min: -1e3, max: 1e3, noNaN: true }),
        fc.infiniteStream(fc.nat()),
        fc.boolean(),
        (rows, value, places, noisy) => {
          const truth = numbers(rows, (row) => 100 * draw(row));
          const few = Math.max(1, Math.floor(rows / 100));
          const predicted = numbers(rows, (row) => value + (noisy ? 0.01 * draw(row, 1) : 0));
          const other = new Set<number>();
          for (const place of places) if (other.add(place % rows).size === 2 * few + 1) break;
          const with_ = (count: number) => {
            const copy = predicted.slice();
            for (const row of [...other].slice(0, count)) copy[row]! += 1 + row;
            return copy;
          };
          assert.deepEqual(flags("MAE", truth, with_(few)), ["constant"]);
          assert.deepEqual(flags("MAE", truth, with_(few), predicted), ["sampleSubmission", "constant"]);
          assert.deepEqual(flags("MAE", truth, with_(2 * few + 1), predicted), []);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("an honest model is not flagged, however weak and however rare the classes", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 10, max: 3000 }),
        fc.double({ min: 0.002, max: 0.5, noNaN: true }),
        fc.double({ min: 0.5, max: 1, noNaN: true }),
        fc.nat(1000),
        (rows, rare, recall, salt) => {
          const truth = numbers(rows, (row) => Number(draw(row, salt) < rare));
          if (!truth.includes(1)) return;
          const found = numbers(rows, (row) => Number(truth[row] === 1 && draw(row, salt + 1) < recall));
          const count = (labels: Column) => labels.filter((label) => label === 1).length;
          // By chance it may find next to nothing of a rare class, which is what the guard's ANSWERED_SHARE means by a constant.
          if (count(found) <= 0.1 * count(truth)) return;
          const none = numbers(rows, () => 0);
          assert.deepEqual(flags("F1", truth, found, none), []);
          assert.deepEqual(
            flags(
              "RocAuc",
              truth,
              found.map((label) => 0.01 + 0.5 * label),
              none,
            ),
            [],
          );
          assert.deepEqual(
            flags(
              "LogLoss",
              truth,
              found.map((label) => 0.01 + 0.5 * label),
              none,
            ),
            [],
          );
        },
      ),
      { numRuns: 300 },
    );
  });
});
