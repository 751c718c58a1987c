/** Properties of a user's own task with any metric: row order has no effect, ids count once, no bytes make a grader throw. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Grader } from "../../crds/trainingrun.ts";
import { type Graded, gradeSubmission, readAnswers } from "./grade.ts";
import { type MetricName, metrics } from "./metrics.ts";

const classes = ["a", "b", "c"];
const columnsOf = (metric: MetricName) =>
  metrics[metric].probabilities && metrics[metric].columns === 2 ? classes : ["y"];
const graderOf = (metric: MetricName): Grader => ({
  ...{ metric, idColumn: "id", targetColumns: columnsOf(metric), rewardFloor: -9 },
  direction: metrics[metric].direction,
});

type Rows = { truth: string[]; predicted: string[] }[];

/** Returns the cells of one row, in the metric's input form. */
function cells(metric: MetricName): fc.Arbitrary<Rows[number]> {
  const both = (cell: fc.Arbitrary<string>) =>
    fc.tuple(cell, cell).map(([truth, predicted]) => ({ truth: [truth], predicted: [predicted] }));
  const number = fc.double({ min: -0.9, max: 99, noNaN: true }).map(String);
  if (columnsOf(metric).length > 1)
    return fc
      .tuple(fc.nat(2), fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 3, maxLength: 3 }))
      .map(([k, parts]) => {
        const sum = parts.reduce((total, part) => total + part, 0);
        return {
          truth: classes.map((_, i) => String(Number(i === k))),
          predicted: parts.map((part) => String(sum === 0 ? 1 / 3 : part / sum)),
        };
      });
  const { input, probabilities } = metrics[metric];
  if (probabilities || metric === "RocAuc")
    return fc
      .tuple(fc.nat(1), fc.integer({ min: 0, max: 20 }))
      .map(([label, chance]) => ({ truth: [String(label)], predicted: [String(chance / 20)] }));
  if (input === "binary") return both(fc.nat(1).map(String));
  if (input === "integers") return both(fc.integer({ min: 1, max: 5 }).map(String));
  if (input === "labels") return both(fc.constantFrom("cat", "dog", "cow"));
  if (input === "texts")
    return both(fc.subarray(["w", "x", "y z", "é"], { minLength: 1 }).map((words) => words.join(" ")));
  return both(number);
}

const rowsOf = (metric: MetricName): fc.Arbitrary<Rows> => fc.array(cells(metric), { minLength: 3, maxLength: 12 });
const csv = (rows: readonly string[][]) => Buffer.from(rows.map((row) => `${row.join(",")}\n`).join(""));
/** Returns the table of `side`, ids first. */
const table = (metric: MetricName, rows: Rows, side: keyof Rows[number]) => [
  ["id", ...columnsOf(metric)],
  ...rows.map((row, i) => [`r${i}`, ...row[side]]),
];

function same(a: Graded, b: Graded): void {
  assert.equal(a.valid, b.valid, `${a.reason.message}; ${b.reason.message}`);
  assert.deepEqual(a.guards, b.guards);
  const scale = Math.max(1, Math.abs(a.score ?? 0));
  assert.ok(Math.abs((a.score ?? 0) - (b.score ?? 0)) <= 1e-9 * scale, `${a.score} ${b.score}`);
}

for (const metric of Object.keys(metrics) as MetricName[]) {
  const grader = graderOf(metric);
  const options = { numRuns: 60 };

  test(`the order of rows and columns does not change ${metric}, and a repeated id is refused`, () => {
    let scored = 0;
    const property = fc.property(rowsOf(metric), fc.infiniteStream(fc.nat()), fc.nat(), (rows, keys, at) => {
      const answers = readAnswers(csv(table(metric, rows, "truth")), grader);
      const [header, ...body] = table(metric, rows, "predicted");
      const plain = gradeSubmission(csv([header!, ...body]), answers);
      if (plain.valid) scored++;
      else assert.equal(plain.reason.code, "undefinedScore", plain.reason.message);
      const shuffled = body
        .map((row) => ({ row, key: keys.next().value }))
        .sort((a, b) => a.key - b.key)
        .map(({ row }) => row);
      same(plain, gradeSubmission(csv([header!, ...shuffled].map((row) => row.toReversed())), answers));
      const [one, other] = [at % body.length, (at + 1) % body.length];
      const repeated = body.with(one, body[other]!);
      assert.equal(gradeSubmission(csv([header!, ...repeated]), answers).reason.code, "idRepeated");
      assert.equal(gradeSubmission(csv([header!, ...body, body[one]!]), answers).reason.code, "rowCount");
    });
    fc.assert(property, options);
    assert.ok(scored > options.numRuns / 3, `${scored} of ${options.numRuns} had a score`);
  });

  test(`no bytes make the grader of ${metric} throw`, () => {
    const bytes = fc.uint8Array({ maxLength: 4 });
    const damaged = fc.property(rowsOf(metric), fc.nat(), fc.nat(3), bytes, (rows, at, gone, put) => {
      const answers = readAnswers(csv(table(metric, rows, "truth")), grader);
      const whole = csv(table(metric, rows, "predicted"));
      const place = at % whole.length;
      const bitten = Buffer.concat([whole.subarray(0, place), put, whole.subarray(place + gone)]);
      const { valid, score, reason } = gradeSubmission(bitten, answers);
      assert.equal(valid, score !== undefined && Number.isFinite(score), reason.message);
      assert.equal(valid, reason.code === "valid");
      assert.match(reason.message, /^\P{C}+$/u);
    });
    fc.assert(damaged, options);
  });
}
