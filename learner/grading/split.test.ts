/** The public and the private part of the answers: their sizes, their classes, and that no grade depends on the private answers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Grader } from "../../crds/trainingrun.ts";
import { gradeSubmission, readAnswers } from "./grade.ts";
import { type MetricName, metrics } from "./metrics.ts";
import { privatePartOf } from "./private-score.ts";
import { estimateRewardRange } from "./reward-range.ts";
import { type Parts, partsOf, type Split, splitOf } from "./split.ts";

const numbers = (rows: number, value: (row: number) => number) => [
  Float64Array.from({ length: rows }, (_, row) => value(row)),
];
/** A metric that always has a score. */
const parts = (split: Split, metric: MetricName, truth: Float64Array[]) => partsOf(split, metric, truth, () => 0);
const sizes = ({ public: open, private: hidden }: Parts) => [open.length, hidden.length];

test("each row is in one part, and the same share gives the same rows", () => {
  for (const [share, rows, expected] of [
    [0.5, 100, 50],
    [0.5, 101, 51],
    [0.1, 1000, 100],
    [0.9, 200, 180],
    [0.25, 50, 13],
  ] as const) {
    const truth = numbers(rows, (row) => row);
    const split = parts(share, "MAE", truth)!;
    assert.deepEqual(sizes(split), [rows - expected, expected]);
    const all = [...split.public, ...split.private].sort((a, b) => a - b);
    assert.deepEqual(
      all,
      Array.from({ length: rows }, (_, row) => row),
    );
    assert.deepEqual(
      parts(
        share,
        "MAE",
        numbers(rows, (row) => -row),
      ),
      split,
      "numbers do not decide it",
    );
  }
  const { private: rows } = parts(
    0.5,
    "MAE",
    numbers(100, (row) => row),
  )!;
  const gaps = new Set(rows.subarray(1).map((row, at) => row - rows[at]!));
  assert.ok(gaps.size > 3, "rows are drawn, not every other one taken");
  assert.equal(
    parts(
      0,
      "MAE",
      numbers(4, () => 1),
    ),
    undefined,
  );
});

test("Half is every other row, whatever the metric and the number of rows", () => {
  assert.equal(splitOf({ rewardSplit: "Half", privateShare: 0 }), "EveryOther");
  assert.deepEqual([splitOf({}), splitOf({ privateShare: 0.25 })], [0, 0.25]);
  for (const metric of ["MAE", "Accuracy"] as const)
    assert.deepEqual(
      parts(
        "EveryOther",
        metric,
        numbers(5, (row) => row),
      ),
      {
        public: Uint32Array.of(0, 2, 4),
        private: Uint32Array.of(1, 3),
      },
    );
});

test("each class has its share of rows in the private part, and no class of two rows vanishes from a part", () => {
  const label = (row: number) => (row < 100 ? 0 : row < 130 ? 1 : row < 132 ? 2 : 3); // 100, 30, 2 and 1 rows
  for (const [share, expected] of [
    [0.5, [50, 15, 1]],
    [0.1, [10, 3, 1]],
    [0.9, [90, 27, 1]],
  ] as const)
    for (const metric of ["Accuracy", "RocAuc", "QuadraticWeightedKappa"] as const) {
      const split = parts(share, metric, numbers(133, label))!;
      const counts = [0, 1, 2].map((found) => [...split.private].filter((row) => label(row) === found).length);
      for (const [found, count] of counts.entries())
        assert.ok(Math.abs(count - expected[found]!) <= (found === 2 ? 0 : 1), `${share} ${metric}: ${counts}`);
    }
  const oneHot = [0, 1, 2].map((found) => numbers(133, (row) => Number(label(row) === found))[0]!);
  const { private: rows } = parts(0.5, "LogLoss", oneHot)!;
  assert.equal([...rows].filter((row) => label(row) === 1).length, 15, "classes of several columns");
});

const graderOf = (metric: MetricName, targetColumns = ["y"]): Grader => ({
  ...{ metric, idColumn: "id", targetColumns, rewardFloor: -9 },
  direction: metrics[metric].direction,
});
const csv = (head: string, rows: readonly string[][]) =>
  Buffer.from(`${head}\n${rows.map((row, id) => `${[id, ...row].join()}\n`).join("")}`);

test("answers that cannot be split are refused with the remedy", () => {
  const opened = (metric: MetricName, cells: string[], split: number) =>
    readAnswers(
      csv(
        "id,y",
        cells.map((cell) => [cell]),
      ),
      graderOf(metric),
      { split },
    );
  const few = Array.from({ length: 30 }, (_, row) => String(row));
  assert.throws(() => opened("MAE", few, 0.2), {
    message:
      "privateShare 0.2 leaves 6 of 30 rows in the private part, fewer than 10; give more answers, or set privateShare to 0",
  });
  assert.throws(() => opened("MAE", few, 0.9), /leaves 3 of 30 rows in the public part/);
  const lone = few.map((_, row) => String(Number(row === 7)));
  assert.throws(
    () => opened("RocAuc", lone, 0.5),
    /rows in the (public|private) part, on which RocAuc is undefined: their answers are all alike, or a class is missing; give more answers, or set privateShare to 0$/,
  );
  assert.throws(
    () =>
      opened(
        "Pearson",
        few.map(() => "4"),
        0.5,
      ),
    /on which Pearson is undefined/,
  );
  assert.equal(opened("Accuracy", lone, 0.5).parts!.private.length, 15, "a score that one class suffices for");
  assert.doesNotThrow(() =>
    readAnswers(
      csv(
        "id,y",
        few.slice(0, 3).map((cell) => [cell]),
      ),
      graderOf("MAE"),
      { split: "EveryOther" },
    ),
  );
});

/** Cells of a target column that a metric takes, as texts. */
function cellOf(metric: MetricName): fc.Arbitrary<string> {
  const { input, probabilities } = metrics[metric];
  if (probabilities || metric === "RocAuc" || input === "binary") return fc.constantFrom("0", "1");
  if (input === "integers") return fc.integer({ min: 1, max: 5 }).map(String);
  if (input === "labels") return fc.constantFrom("cat", "dog", "cow", "ox");
  if (input === "texts") return fc.subarray(["w", "x", "y", "z"], { minLength: 1 }).map((words) => words.join(" "));
  return fc.double({ min: -0.9, max: 99, noNaN: true }).map(String);
}

const oneColumn = (Object.keys(metrics) as MetricName[]).filter((metric) => (metrics[metric].columns ?? 1) === 1);
for (const metric of oneColumn)
  test(`no grade, guard or reward range depends on the private answers: ${metric}`, () => {
    const cell = cellOf(metric);
    const row = fc.record({ truth: cell, other: cell, predicted: cell, sample: cell });
    let differ = 0;
    fc.assert(
      fc.property(fc.array(row, { minLength: 6, maxLength: 16 }), (rows) => {
        const sample = csv(
          "id,y",
          rows.map((one) => [one.sample]),
        );
        const open = (hidden: "truth" | "other") =>
          readAnswers(
            csv(
              "id,y",
              rows.map((one, at) => [at % 2 === 1 ? one[hidden] : one.truth]),
            ),
            graderOf(metric),
            {
              ...{ split: "EveryOther", sample },
            },
          );
        const [before, after] = [open("truth"), open("other")];
        for (const submission of [
          csv(
            "id,y",
            rows.map((one) => [one.predicted]),
          ),
          sample,
          csv(
            "id,y",
            rows.map((one) => [one.truth]),
          ),
        ]) {
          assert.deepEqual(gradeSubmission(submission, after), gradeSubmission(submission, before));
          const [was, is] = [before, after].map((answers) => privatePartOf(answers).privateScore(submission)!);
          assert.equal(typeof was!.score === "number" || was!.reason !== "valid", true);
          if (was!.score !== is!.score) differ++;
        }
        assert.deepEqual(estimateRewardRange(after, sample), estimateRewardRange(before, sample));
      }),
      { numRuns: 60, seed: 1 },
    );
    assert.ok(differ > 20, `${differ} private scores differ, so the answers did`);
  });

test("partScores scores any rows of a part, each as often as it is listed", () => {
  const rows = Array.from({ length: 20 }, (_, row) => [String(row)]);
  const answers = readAnswers(csv("id,y", rows), graderOf("MAE"), { split: "EveryOther" });
  const parts = privatePartOf(answers).partScores(
    csv(
      "id,y",
      rows.map(([cell], row) => [String(Number(cell) + row)]),
    ),
  );
  assert.ok(parts && !("reason" in parts));
  assert.equal(parts.private.score(parts.private.rows), 10);
  assert.equal(parts.public.score(Uint32Array.of(2, 2, 2, 6)), 3);
  assert.deepEqual(privatePartOf(answers).partScores(csv("id,z", rows)), {
    reason: gradeSubmission(csv("id,z", rows), answers).reason,
  });
});
