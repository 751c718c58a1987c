import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { accuracy } from "./labels.ts";
import { type MetricName, metrics, scoreColumns } from "./metrics.ts";
import { rocAuc } from "./probabilities.ts";
import { mean, sum } from "./sums.ts";

const columns = (...values: number[][]) => values.map((column) => Float64Array.from(column));

const y = [3, -0.5, 2, 7, 4.25, 0, 1e6, 3];
const p = [2.5, 0, 2, 8, 4, 0.125, 999999.5, -3];
const labels = [0, 1, 1, 0, 1, 0, 0, 1, 1, 0];
const chances = [0.1, 0.4, 0.35, 0.8, 0.4, 0.4, 0, 1, 0.9, 0.4];
const similar = [0, 0.25, 0.5, 1, 0.75, 0.25];
const twoTrue = [
  [1, 3, 8],
  [2, 5, 1],
];
const twoPredicted = [
  [1.5, 2, 7],
  [2, 4, 3],
];
const oneHot = [
  [1, 0, 0, 1],
  [0, 1, 0, 0],
  [0, 0, 1, 0],
];
const threeChances = [
  [0.7, 0.1, 0.25, 0],
  [0.2, 0.8, 0.25, 0.5],
  [0.1, 0.1, 0.5, 0.5],
];

/** Expected values: scikit-learn 1.9.1. */
const table: [string, keyof typeof metrics, number[][], number[][], number][] = [
  ["MAE", "MAE", [y], [p], 1.109375],
  ["RMSE", "RMSE", [y], [p], 2.1745150321393503],
  ["R2", "R2", [y], [p], 0.9999999999567676],
  ["MAE of two columns", "MAE", twoTrue, twoPredicted, 0.9166666666666667],
  ["RMSE of two columns", "RMSE", twoTrue, twoPredicted, 1.078509926260122],
  ["R2 of two columns", "R2", twoTrue, twoPredicted, 0.6682692307692308],
  ["R2, constant truth met", "R2", [[2, 2, 2]], [[2, 2, 2]], 1],
  ["R2, constant truth missed", "R2", [[2, 2, 2]], [[1, 2, 3]], 0],
  ["R2, constant prediction", "R2", [[1, 2, 3]], [[2, 2, 2]], 0],
  ["R2 of one row", "R2", [[1]], [[1]], Number.NaN],
  // Computed by scipy 1.15.
  ["Pearson, subnormal", "Pearson", [similar], [[0, 5e-324, 0, 5e-324, 5e-324, 0]], 0.5],
  ["Pearson, a few digits", "Pearson", [similar], [[0, 1e-320, 0, 3e-320, 2e-320, 1e-320]], 0.8327348327348327],
  ["Pearson, overflow", "Pearson", [similar], [[0, 1e308, 0, 1.7e308, 1e308, 5e307]], Number.NaN],
  ["ROC AUC with ties", "RocAuc", [labels], [chances], 0.72],
  ["ROC AUC, all the same", "RocAuc", [[0, 1, 0, 1]], [[0.5, 0.5, 0.5, 0.5]], 0.5],
  ["ROC AUC, one class", "RocAuc", [[1, 1]], [[0.5, 0.6]], Number.NaN],
  ["ROC AUC, column mean", "RocAuc", [labels, labels], [chances, labels], 0.86],
  ["log loss", "LogLoss", [labels], [chances], 0.5724213779528722],
  ["log loss, certain and wrong", "LogLoss", [[0, 1, 1, 0]], [[0, 1, 0, 1]], 18.021826694558577],
  ["log loss, certain and right", "LogLoss", [[1, 0]], [[1, 0]], 2.2204460492503136e-16],
  ["log loss, three classes", "LogLoss", oneHot, threeChances, 9.32915476623251],
  ["accuracy", "Accuracy", [[1, 2, 3, 1]], [[1, 2, 1, 3]], 0.5],
];

test("metrics agree with scikit-learn", async (t) => {
  for (const [name, metric, truth, predicted, expected] of table)
    await t.test(name, () => {
      const score = scoreColumns(metric, columns(...truth), columns(...predicted));
      if (Number.isNaN(expected)) assert.ok(Number.isNaN(score), `${score}`);
      else
        assert.ok(Math.abs(score - expected) <= 1e-12 * Math.max(1, Math.abs(expected)), `${score}, not ${expected}`);
    });
});

test("no metric depends on the order of rows", () => {
  const rows = fc.array(fc.tuple(fc.boolean(), fc.double({ min: 0, max: 1, noNaN: true })), {
    minLength: 2,
    maxLength: 30,
  });
  fc.assert(
    fc.property(rows, (values) => {
      const ofNumbers = Object.entries(metrics).filter(([, { input }]) => input !== "texts");
      for (const [name] of ofNumbers) {
        const of = (list: typeof values) =>
          scoreColumns(name as MetricName, columns(list.map(([t]) => Number(t))), columns(list.map(([, c]) => c)));
        const [forward, backward] = [of(values), of(values.toReversed())];
        assert.ok(
          Object.is(forward, backward) || Math.abs(forward - backward) < 1e-9 * Math.max(1, Math.abs(forward)),
          `${forward} ${backward}`,
        );
      }
    }),
  );
});

test("ROC AUC is the share of pairs in the right order", () => {
  const rows = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 5 })), { minLength: 2, maxLength: 25 });
  fc.assert(
    fc.property(rows, (values) => {
      const of = (kind: boolean) => values.filter(([label]) => label === kind).map(([, value]) => value);
      const pairs = of(true).flatMap((a) => of(false).map((b) => (a > b ? 1 : a === b ? 0.5 : 0)));
      const expected = pairs.reduce<number>((sum, pair) => sum + pair, 0) / pairs.length;
      const actual = rocAuc(
        ...(columns(
          values.map(([t]) => Number(t)),
          values.map(([, v]) => v),
        ) as [Float64Array, Float64Array]),
      );
      assert.ok(Object.is(actual, expected) || Math.abs(actual - expected) < 1e-12);
    }),
  );
});

/** numpy 2.2's sums of 1/1 + 1/2 + ... + 1/n. */
const harmonic: [number, number][] = [
  [7, 2.5928571428571425],
  [128, 5.433147092589173],
  [8192, 9.58819004609531],
  [20_000, 10.480728217229329],
  [100_001, 12.090156129763434],
];
test("sums equal numpy's to the last bit", () => {
  for (const [n, expected] of harmonic) {
    const values = Float64Array.from({ length: n }, (_, i) => 1 / (i + 1));
    assert.deepEqual([sum(values), mean(values)], [expected, expected / n], String(n));
  }
  assert.deepEqual([sum(new Float64Array()), sum(Float64Array.of(3))], [0, 3]);
});

test("a label that is not among the answers' is wrong", () => {
  assert.equal(accuracy(Float64Array.of(0, 1), Float64Array.of(-1, 1)), 0.5);
});

test("an exact prediction has the better score for every metric, by the metric's direction", () => {
  const numbers = [[Float64Array.of(1, 0, 1, 0)], [Float64Array.of(0, 1, 1, 0)]] as const;
  const classes = [
    [Float64Array.of(1, 0, 1, 0), Float64Array.of(0, 1, 0, 1)],
    [Float64Array.of(0, 1, 1, 0), Float64Array.of(1, 0, 0, 1)],
  ] as const;
  const texts = [[["a b", "c"]], [["x", "c"]]] as const;
  for (const [name, { direction, input, columns = 1 }] of Object.entries(metrics)) {
    const [truth, poor] = input === "texts" ? texts : columns > 1 ? classes : numbers;
    const [best, worse] = [truth, poor].map((predicted) => scoreColumns(name as MetricName, truth, predicted));
    const isBetter = direction === "Higher" ? best! > worse! : best! < worse!;
    assert.ok(isBetter, `${name}: ${best} for an exact prediction, ${worse} for a poor one`);
  }
});
