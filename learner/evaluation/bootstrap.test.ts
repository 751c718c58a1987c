import assert from "node:assert/strict";
import { test } from "node:test";
import { uniforms } from "../engine/model/random.ts";
import { differenceIntervals, mean, percentileIntervals, standardError } from "./bootstrap.ts";

const statistics = (values: number[]) => ({
  mean: values.length > 0 ? mean(values) : null,
  most: Math.max(...values),
  aboveTwo: values.some((value) => value > 2) ? mean(values.filter((value) => value > 2)) : null,
  never: null,
});

test("the percentile interval of a mean agrees with theory and is the same for the same seed", () => {
  const next = uniforms(5, "values");
  const values = Array.from({ length: 400 }, () => next());
  const found = percentileIntervals(values, statistics, { seed: 1, draws: 4000 });
  const spread = standardError(values)! * 1.96;
  const [low, high] = found.mean!;
  assert.ok(Math.abs(low - (mean(values) - spread)) < 0.1 * spread, `${low}`);
  assert.ok(Math.abs(high - (mean(values) + spread)) < 0.1 * spread, `${high}`);
  assert.equal(found.most![1], Math.max(...values), "the interval of a maximum ends at the largest value");
  assert.deepEqual(percentileIntervals(values, statistics, { seed: 1, draws: 4000 }), found);
  assert.notDeepEqual(percentileIntervals(values, statistics, { seed: 2, draws: 4000 }).mean, found.mean);
});

test("percentile intervals leave out draws without a value, and are null if no draw has one", () => {
  const { aboveTwo, never } = percentileIntervals([1, 1, 1, 3], statistics, { seed: 0 });
  assert.deepEqual([aboveTwo, never], [[3, 3], null]);
  assert.equal(percentileIntervals([], statistics, { seed: 0, draws: 10 }).mean, null);
});

test("percentile intervals draw related values together", () => {
  const ofUnits = (units: number[][]) => statistics(units.flat());
  const alone = percentileIntervals(
    [0, 0, 0, 0, 1, 1, 1, 1].map((value) => [value]),
    ofUnits,
    { seed: 3 },
  ).mean!;
  const together = percentileIntervals(
    [
      [0, 0, 0, 0],
      [1, 1, 1, 1],
    ],
    ofUnits,
    { seed: 3 },
  ).mean!;
  assert.deepEqual(together, [0, 1]);
  assert.ok(alone[1] - alone[0] < 0.9, `${alone}`);
});

test("the interval of a difference contains it, and is null if one side has no value", () => {
  const found = differenceIntervals([3, 4, 5, 4], [1, 2, 1, 2], statistics, { seed: 0 });
  assert.ok(
    found.mean![0] > 1.2 && found.mean![1] < 3.8 && found.mean![0] < 2.5 && found.mean![1] > 2.5,
    `${found.mean}`,
  );
  assert.equal(found.aboveTwo, null);
});

test("intervals of a difference draw pairs if both sides have as many values", () => {
  const control = [1, 5, 2, 9]; // four, whose means are exact
  const treated = control.map((value) => value + 1);
  assert.deepEqual(differenceIntervals(treated, control, statistics, { seed: 0 }).mean, [1, 1]);
  const [low, high] = differenceIntervals([...treated, 4], control, statistics, { seed: 0 }).mean!;
  assert.ok(low < 0 && high > 2, `${low} ${high}`);
});

test("the standard error is numpy's std(ddof=1) / sqrt(n)", () => {
  // numpy.std([0.895, 0.896, 0.893], ddof=1) / 3 ** 0.5
  assert.ok(Math.abs(standardError([0.895, 0.896, 0.893])! - 0.0008819171036881961) < 1e-15);
  assert.equal(standardError([1]), undefined);
});
