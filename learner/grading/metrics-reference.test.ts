import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type MetricName, metrics, scoreColumns } from "./metrics.ts";

interface Reference {
  metric: MetricName;
  name: string;
  truth: number[][];
  predicted: number[][];
  /** null if scikit-learn or scipy has no score. */
  score: number | null;
}

/** Made by make_metric_reference.py in the same folder. */
const references: Reference[] = JSON.parse(
  readFileSync(new URL("../../test/fixtures/grading/metrics.json", import.meta.url), "utf8"),
);
const columns = (values: number[][]) => values.map((column) => Float64Array.from(column));

test("every metric of numbers and labels has a reference", () => {
  const named = new Set(references.map(({ metric }) => metric));
  const without = Object.entries(metrics).filter(([name]) => !named.has(name as MetricName));
  assert.deepEqual(
    without.map(([name, { input }]) => [name, input]),
    [
      ["WordJaccard", "texts"],
      ["MAPAtK", "texts"],
    ],
  );
});

for (const metric of new Set(references.map((one) => one.metric)))
  test(`${metric} equals scikit-learn's`, () => {
    for (const { name, truth, predicted, score } of references.filter((one) => one.metric === metric)) {
      const actual = scoreColumns(metric, columns(truth), columns(predicted));
      if (score === null) assert.ok(!Number.isFinite(actual), `${name}: ${actual}`);
      else
        assert.ok(Math.abs(actual - score) <= 1e-12 * Math.max(1, Math.abs(score)), `${name}: ${actual}, not ${score}`);
    }
  });

test("mean average precision at k has the values of its definition", () => {
  const table: [string, string, number, number][] = [
    ["a", "a b c", 3, 1],
    ["a", "b a c", 3, 1 / 2],
    ["a", "b c a", 2, 0],
    ["a b", "a b", 3, 1],
    ["a b", "b x a", 3, (1 + 2 / 3) / 2],
    ["a b c d", "a b", 2, 1],
    ["a", "a a a", 3, 1],
    ["a b", "a a b", 3, (1 + 2 / 3) / 2],
    ["a", "", 3, 0],
    ["", "a", 3, 0],
  ];
  for (const [truth, predicted, k, expected] of table)
    assert.equal(scoreColumns("MAPAtK", [[truth]], [[predicted]], { k }), expected, `${truth} | ${predicted}`);
  assert.equal(scoreColumns("MAPAtK", [["a", "f"]], [["a", "a b c d e f"]]), 0.5, "five items count by default");
});

test("the overlap of words has the values of its definition", () => {
  const table: [string, string, number][] = [
    ["a b", "B c", 1 / 3],
    ["a a b", "a b", 1],
    ["a", "", 0],
    ["a\u001fb", "a b", 1],
    ["a\ufeffb", "a b", 0],
  ];
  for (const [truth, predicted, expected] of table)
    assert.equal(scoreColumns("WordJaccard", [[truth]], [[predicted]]), expected);
  assert.ok(Number.isNaN(scoreColumns("WordJaccard", [["", "a"]], [[" ", "a"]])));
});
