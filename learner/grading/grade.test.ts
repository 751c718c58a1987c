import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Grader } from "../../crds/trainingrun.ts";
import { type Answers, gradeSubmission, readAnswers } from "./grade.ts";
import { privatePartOf } from "./private-score.ts";

const grader = (metric: Grader["metric"], targetColumns = ["y"]): Grader => ({
  metric,
  idColumn: "id",
  targetColumns,
  direction: metric === "MAE" || metric === "RMSE" || metric === "LogLoss" ? "Lower" : "Higher",
  rewardFloor: -9,
});
const mae = grader("MAE");
const bytes = (text: string) => Buffer.from(text);
const answers = readAnswers(bytes("id,y\n0,10\n1,20\n2,30\n"), mae, { sample: bytes("id,y\n0,1\n1,2\n2,3\n") });
const textIds = readAnswers(bytes('id,y\na,1\n"b, c",2\n'), mae);

const valid: [string, string | Buffer, number, Answers?][] = [
  ["exact", "id,y\n0,10\n1,20\n2,30\n", 0],
  ["no final line break", "id,y\n0,13\n1,20\n2,30", 1],
  ["rows in another order", "id,y\n2,30\n0,10\n1,17\n", 1],
  ["columns in another order", "y,id\n10,0\n20,1\n33,2\n", 1],
  ["further columns", "row,id,y,z\n9,0,10,a\n9,1,20,b\n9,2,33,c\n", 1],
  ["byte order mark, CRLF", "\uFEFFid,y\r\n0,10\r\n1,20\r\n2,33\r\n", 1],
  ["old Mac line ends", "id,y\r0,10\r1,20\r2,33\r", 1],
  ["blank lines", "\nid,y\n\n0,10\n1,20\n\n2,33\n\n", 1],
  ["quoted", '"id","y"\n"0","10"\n"1","20"\n"2","33"\n', 1],
  ["scientific, signs, spaces", "id,y\n0, 1e1\n1,+2.0E1 \n2,.33e2\n", 1],
  ["ids as floats, with zeros", "id,y\n0.0,10\n01,20\n2 ,33\n", 1],
  ["of two columns with one name the first", "id,y,y\n0,10,0\n1,20,0\n2,33,0\n", 1],
  ["True and False", "id,y\n0,True\n1,False\n2,True\n", 58 / 3],
  ["an id that is the text NA", "id,y\nNA,1\na,3\n", 0.5, readAnswers(bytes("id,y\na,2\nNA,1\n"), mae)],
  ["text ids", 'id,y\n"b, c",2\na,3\n', 1, textIds],
];

const invalid: [string, string | Buffer, RegExp, Answers?][] = [
  ["empty", "", /^the file is empty$/],
  ["white space", " \n", /^the file is empty$/],
  ["header alone", "id,y\n", /^0 rows, the test set has 3$/],
  ["no header", "0,10\n1,20\n2,30\n", /^missing column id; the header is 0,10$/],
  ["target column missing", "id,x\n0,1\n1,1\n2,1\n", /^missing column y; the header is id,x$/],
  ["id column missing", "y\n1\n1\n1\n", /^missing column id/],
  ["header in capitals", "ID,Y\n0,1\n1,1\n2,1\n", /^missing column id; the header has "ID", with other capitals$/],
  ["header with a blank", "id,y \n0,1\n1,1\n2,1\n", /^missing column y; the header has "y ", with a blank at the end$/],
  ["row missing", "id,y\n0,1\n1,1\n", /^2 rows, the test set has 3$/],
  ["row too many", "id,y\n0,1\n1,1\n2,1\n3,1\n", /^more than 3 rows, the test set has 3$/],
  ["id twice", "id,y\n0,1\n1,1\n1,1\n", /^id 1 in row 3 occurs more often than in the test set$/],
  ["id twice as number", "id,y\n0,1\n1,1\n1.0,1\n", /^id 1.0 in row 3 occurs more often than in the test set$/],
  ["unknown id", "id,y\n0,1\n1,1\n7,1\n", /^id 7 in row 3 is not in the test set$/],
  ["id empty", "id,y\n0,1\n1,1\n,1\n", /^id is missing \(NaN\) in row 3$/],
  ["text id with a space", 'id,y\n"a ",1\n"b, c",1\n', /^id a {2}in row 1 is not in the test set$/, textIds],
  ["short row", "id,y\n0,1\n1\n2,1\n", /^y is missing \(NaN\) in row 2$/],
  ["long row", "id,y\n0,1\n1,1,1\n2,1\n", /^row 2 has 3 fields, more than the 2 of the rows before it$/],
  ["NaN", "id,y\n0,1\n1,nan\n2,1\n", /^y is missing \(NaN\) in row 2$/],
  ["empty cell", "id,y\n0,1\n1,\n2,1\n", /^y is missing \(NaN\) in row 2$/],
  ["infinite", "id,y\n0,1\n1,-inf\n2,1\n", /^y in row 2 is infinite$/],
  ["number too large", "id,y\n0,1\n1,1e999\n2,1\n", /^y in row 2 is not a number: 1e999$/],
  ["overflow of the metric", "id,y\n0,1.7e308\n1,-1.7e308\n2,1.7e308\n", /^MAE is not a finite number/],
  ["text", "id,y\n0,1\n1,high\n2,1\n", /^y in row 2 is not a number: high$/],
  ["decimal comma", 'id,y\n0,1\n1,"1,5"\n2,1\n', /^y in row 2 is not a number: 1,5$/],
  ["hexadecimal", "id,y\n0,1\n1,0x1F\n2,1\n", /not a number/],
  ["one True among numbers", "id,y\n0,1\n1,True\n2,1\n", /not a number: True/],
  ["digits of another script", "id,y\n0,1\n1,١\n2,1\n", /not a number/],
  ["separated by semicolons", "id;y\n0;1\n1;1\n2;1\n", /^missing column id; the header is id;y$/],
  ["separated by tabs", "id\ty\n0\t1\n1\t1\n2\t1\n", /^missing column id/],
  ["open quote", 'id,y\n0,"1\n1,1\n2,1\n', /^a quoted field that starts in row 1 is never closed$/],
  ["quote inside a field", 'id,y\n0,1"2\n1,1\n2,1\n', /^y in row 1 is not a number: 1"2$/],
  ["UTF-16", Buffer.from("id,y\n0,1\n1,1\n2,1\n", "utf16le"), /^more than 3 rows/],
  ["not UTF-8", Buffer.from([0x69, 0x64, 0x2c, 0x79, 0x0a, 0xff, 0xfe]), /^the file is not UTF-8 text$/],
  ["pickle", Buffer.from([0x80, 0x04, 0x95, 0x00]), /^the file is not UTF-8 text$/],
  ["escape sequence is not passed on", "id,y\n0,1\n1,\u001b[31m\n2,1\n", /^y in row 2 is not a number: {2}\[31m$/],
  ["too large", Buffer.alloc(2 ** 20 + 1, "a"), /^the file has 1048577 bytes, more than the 1048576/],
  ["many columns", `${"a,".repeat(20_000)}id,y\n`, /^the header has more than 10000 columns$/],
];

test("the grader grades valid submissions", async (t) => {
  for (const [name, submission, score, against = answers] of valid)
    await t.test(name, () => {
      const graded = gradeSubmission(Buffer.from(submission), against);
      assert.deepEqual([graded.valid, graded.reason.code], [true, "valid"]);
      assert.ok(Math.abs(graded.score! - score) < 1e-12, `${graded.score}`);
    });
});

test("the grader refuses invalid submissions", async (t) => {
  for (const [name, submission, reason, against = answers] of invalid)
    await t.test(name, () => {
      const graded = gradeSubmission(Buffer.from(submission), against);
      assert.deepEqual([graded.valid, graded.score], [false, undefined]);
      assert.match(graded.reason.message, reason);
      assert.match(graded.reason.message, /^\P{C}+$/u);
    });
});

test("the grader reads probabilities", async (t) => {
  const names = ["a", "b"];
  const two = readAnswers(bytes("id,a,b\n0,1,0\n1,0,1\n"), grader("LogLoss", names));
  const one = readAnswers(bytes("id,y\n0,1\n1,0\n"), grader("LogLoss"));
  const table: [string, Answers, string, boolean, RegExp][] = [
    ["sum 1", two, "id,a,b\n0,.5,.5\n1,0,1\n", true, /valid/],
    ["sum almost 1", two, "id,a,b\n0,.5,.50001\n1,0,1\n", true, /valid/],
    ["sum not 1", two, "id,a,b\n0,.5,.4999\n1,0,1\n", false, /of row 1 add up to 0.9999, not to 1/],
    ["negative", two, "id,a,b\n0,-.1,1.1\n1,0,1\n", false, /a in row 1 is -0.1, it has to be in 0..1/],
    ["one column", one, "id,y\n0,.5\n1,.25\n", true, /valid/],
    ["one column above 1", one, "id,y\n0,1.5\n1,.25\n", false, /y in row 1 is 1.5, it has to be in 0..1/],
  ];
  for (const [name, against, text, ok, reason] of table)
    await t.test(name, () => {
      const graded = gradeSubmission(bytes(text), against);
      assert.equal(graded.valid, ok);
      assert.match(graded.reason.message, reason);
    });
});

test("labels may be text or numbers in any notation", () => {
  const accuracy = grader("Accuracy");
  const text = readAnswers(bytes("id,y\n0,cat\n1,dog\n2,cat\n3,1\n"), accuracy);
  assert.equal(gradeSubmission(bytes("id,y\n0,cat\n1,cow\n2,NA\n3,1\n"), text).score, 0.5);
  const numbers = readAnswers(bytes("id,y\n0,1\n1,2\n"), accuracy);
  assert.equal(gradeSubmission(bytes("id,y\n0,1.0\n1,2\n"), numbers).score, 1);
  assert.equal(gradeSubmission(bytes("id,y\n0,one\n1,2\n"), numbers).valid, false);
});

// Neighbours beyond 2^53, which are equal as doubles.
const [large, next] = ["1712345678901234567", "1712345678901234568"];

test("ids and labels beyond 2^53 are compared exactly", async (t) => {
  const columns = grader("Accuracy", ["y", "z"]);
  const table: [string, Grader, string, string, number | RegExp][] = [
    ["ids", mae, `id,y\n${large},1\n${next},2\n`, `id,y\n${next},2\n${large},1\n`, 0],
    ["ids as floats", mae, `id,y\n${large},1\n${next},2\n`, `id,y\n${large}.0,1\n${next}.0,2\n`, /not in the test set/],
    ["even ids as floats", mae, "id,y\n9007199254740992,1\n8,2\n", "id,y\n9007199254740992.0,1\n8.0,2\n", 0],
    ["labels", grader("Accuracy"), `id,y\n0,${large}\n1,${next}\n`, `id,y\n0,${large}\n1,${large}\n`, 0.5],
    ["negative labels", grader("Accuracy"), `id,y\n0,-${large}\n1,-${next}\n`, `id,y\n0,-${large}\n1,-${large}\n`, 0.5],
    // Both wrong labels have F1 0, so the mean is over four labels.
    [
      "labels that the answers lack",
      grader("F1Macro"),
      "id,y\n0,1\n1,2\n2,2\n3,2\n",
      `id,y\n0,1\n1,2\n2,${large}\n3,${next}\n`,
      (1 + 1 / 2) / 4,
    ],
    [
      "labels in order",
      grader("QuadraticWeightedKappa"),
      `id,y\n0,1\n1,${large}\n2,${next}\n3,1\n`,
      `id,y\n0,1\n1,${next}\n2,${large}\n3,${large}\n`,
      0.4,
    ],
    [
      "kappa's labels between others",
      grader("QuadraticWeightedKappa"),
      "id,y\n0,1\n1,4\n2,9\n3,4\n",
      "id,y\n0,1\n1,5\n2,9\n3,0\n",
      2 / 3,
    ],
    ["one column of names, one of numbers", columns, "id,y,z\n0,a,1\n1,b,2\n", "id,y,z\n0,a,1.0\n1,b,2.0\n", 1],
  ];
  for (const [name, one, truth, predicted, expected] of table)
    await t.test(name, () => {
      const { score, reason } = gradeSubmission(bytes(predicted), readAnswers(bytes(truth), one));
      if (expected instanceof RegExp) assert.match(reason.message, expected);
      else assert.ok(Math.abs(score! - expected) < 1e-12, `${score} ${reason.message}`);
    });
});

test("the other metrics read their own kinds of columns", async (t) => {
  const of = (metric: Grader["metric"], more: Partial<Grader> = {}, targets = ["y"]): Grader => ({
    ...grader(metric, targets),
    ...more,
  });
  const labels = "id,y\n0,cat\n1,dog\n2,cat\n3,cow\n";
  const table: [string, Grader, string, string, number | RegExp][] = [
    ["bounds", of("MAE", { bounds: { least: 0, most: 5 } }), "id,y\n0,1\n1,2\n", "id,y\n0,0\n1,5\n", 2],
    [
      "above",
      of("MAE", { bounds: { most: 5 } }),
      "id,y\n0,1\n1,2\n",
      "id,y\n0,0\n1,5.5\n",
      /y in row 2 is 5.5, .* at most 5/,
    ],
    [
      "below",
      of("MAE", { bounds: { least: 0 } }),
      "id,y\n0,1\n1,2\n",
      "id,y\n0,-1\n1,5\n",
      /y in row 1 is -1, .* at least 0/,
    ],
    ["log of 0", of("RMSLE"), "id,y\n0,1\n", "id,y\n0,-1\n", /y in row 1 is -1, it has to be above -1/],
    ["0 or 1", of("F1"), "id,y\n0,1\n1,0\n", "id,y\n0,1.0\n1,True\n", /y in row 2 is not a number: True/],
    ["0, 1 or 2", of("F1"), "id,y\n0,1\n1,0\n", "id,y\n0,1.0\n1,2\n", /y in row 2 is 2, it has to be 0 or 1/],
    ["floats as labels", of("F1"), "id,y\n0,1\n1,0\n", "id,y\n0,1.0\n1,1\n", 2 / 3],
    ["kappa", of("QuadraticWeightedKappa"), "id,y\n0,1\n1,2\n", "id,y\n0,1\n1,2.5\n", /y in row 2 is 2.5; labels are/],
    // cat 2/3, dog 0, cow 1, and 0 for each label that only the submission has.
    ["unknown labels", of("F1Macro"), labels, "id,y\n0,cat\n1,owl\n2,NA\n3,cow\n", (2 / 3 + 1) / 5],
    ["words", of("WordJaccard"), "id,y\n0,A b\n1,c\n", 'id,y\n0,a\n1,"c d"\n', 0.5],
    ["no words", of("WordJaccard"), "id,y\n0,A b\n1,\n", "id,y\n0,a\n1,\n", /WordJaccard is not a finite number/],
    ["ranking", of("MAPAtK", { k: 2 }), "id,y\n0,a b\n1,7\n", "id,y\n0,b x a\n1,7\n", 0.75],
    ["a class a column", of("Brier", {}, ["a", "b"]), "id,a,b\n0,1,0\n1,0,1\n", "id,a,b\n0,.5,.5\n1,0,1\n", 0.125],
    ["sums", of("Brier", {}, ["a", "b"]), "id,a,b\n0,1,0\n1,0,1\n", "id,a,b\n0,.5,.4\n1,0,1\n", /row 1 add up to 0.9/],
  ];
  for (const [name, one, truth, predicted, expected] of table)
    await t.test(name, () => {
      const { score, reason } = gradeSubmission(bytes(predicted), readAnswers(bytes(truth), one));
      if (expected instanceof RegExp) assert.match(reason.message, expected);
      else assert.ok(Math.abs(score! - expected) < 1e-12, `${score} ${reason.message}`);
    });
  assert.throws(
    () => readAnswers(bytes("id,y\n0,1\n"), of("RocAucOneVsOne")),
    /RocAucOneVsOne takes a target column for each class, at least 2/,
  );
});

test("guards flag scores that no model has earned", () => {
  const guards = (text: string) => gradeSubmission(bytes(text), answers).guards;
  assert.deepEqual(guards("id,y\n2,3\n1,2.0\n0,1\n"), ["sampleSubmission"]);
  assert.deepEqual(guards("id,y\n0,5\n1,5\n2,5.0\n"), ["constant"]);
  assert.deepEqual(guards("id,y\n0,5\n1,5\n2,6\n"), []);
  assert.deepEqual(guards("id,y\n0,10\n1,20\n2,30\n"), ["perfect"]);
});

test("rewardSplit Half makes every other row private", () => {
  const half = readAnswers(bytes("id,y\n0,0\n1,0\n2,0\n3,0\n"), mae, { split: "EveryOther" });
  const submission = bytes("id,y\n0,1\n1,10\n2,3\n3,20\n");
  assert.equal(gradeSubmission(submission, half).score, 2);
  assert.deepEqual(privatePartOf(half).privateScore(submission), { score: 15, reason: "valid" });
});

test("a score that is undefined on the private rows says why, and the submission stays valid", () => {
  const pearson = readAnswers(bytes("id,y\n0,0\n1,5\n2,1\n3,5\n"), grader("Pearson"), { split: "EveryOther" });
  const submission = bytes("id,y\n0,0\n1,1\n2,1\n3,2\n");
  assert.deepEqual(gradeSubmission(submission, pearson).score, 1);
  assert.match(privatePartOf(pearson).privateScore(submission)!.reason, /Pearson/);
  assert.equal(privatePartOf(pearson).privateScore(submission)!.score, undefined);
  assert.equal(privatePartOf(answers).privateScore(submission), undefined, "there is no private part");
  assert.deepEqual(privatePartOf(pearson).privateScore(bytes("id\n0\n")), {
    reason: gradeSubmission(bytes("id\n0\n"), pearson).reason.message,
  });
});

test("the grader refuses answers that do not fit it", async (t) => {
  const table: [string, string, Grader, RegExp][] = [
    ["no such column", "id,x\n0,1\n", mae, /missing column y/],
    ["no rows", "id,y\n", mae, /there is no row/],
    ["repeated ids", "id,y\n1,1\n7,2\n01,2\n", mae, /repeated values: 01 in rows 1 and 3$/],
    [
      "a comma at the ends of rows",
      "id,y\n0,1,\n1,2,\n",
      mae,
      /the header has 2 names, .*; remove the delimiter at their ends$/,
    ],
    ["repeated text ids", "id,y\na,1\na,2\n", mae, /repeated values: a in rows 1 and 2$/],
    [
      "numbers that are equal as doubles",
      `id,y\n1,${large}\n2,${next}\n`,
      mae,
      /column y has 1712345678901234567 and 1712345678901234568, which are equal in double precision; subtract a constant/,
    ],
    ["an id missing", "id,y\n1,1\n,2\n", mae, /id is missing \(NaN\) in row 2/],
    ["text where numbers are needed", "id,y\n1,a\n", mae, /y in row 1 is not a number: a/],
  ];
  for (const [name, text, of, message] of table)
    await t.test(name, () => assert.throws(() => readAnswers(bytes(text), of), message));
});

test("no bytes make a grader throw", () => {
  const graded = (submission: Uint8Array) => gradeSubmission(Buffer.from(submission), answers);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (submission) =>
      assert.equal(typeof graded(submission).valid, "boolean"),
    ),
  );
  const cell = fc.oneof(fc.constantFrom("id", "y", "0", "1", "2", "", "nan", '"', "1e5", "\r"), fc.string());
  const rows = fc.array(fc.array(cell, { maxLength: 4 }), { maxLength: 6 });
  fc.assert(
    fc.property(rows, (table) => {
      const { valid, score } = graded(bytes(["id,y", ...table.map((row) => row.join(","))].join("\n")));
      assert.equal(valid, score !== undefined && Number.isFinite(score));
    }),
  );
});

test("the order of rows and columns changes nothing", () => {
  const values = fc.array(fc.integer({ min: -99, max: 99 }), { minLength: 3, maxLength: 3 });
  fc.assert(
    fc.property(values, fc.shuffledSubarray([0, 1, 2], { minLength: 3 }), (predicted, order) => {
      const straight = `id,y\n${predicted.map((value, id) => `${id},${value}`).join("\n")}`;
      const shuffled = `y,id\n${order.map((id) => `${predicted[id]},${id}`).join("\n")}`;
      assert.deepEqual(gradeSubmission(bytes(straight), answers), gradeSubmission(bytes(shuffled), answers));
    }),
  );
});

test("10,000 rows take less than 50 ms of processor time", () => {
  const rows = Array.from({ length: 10_000 }, (_, id) => `${id},${(id * 7919) % 1000}.123456`);
  const text = bytes(`id,y\n${rows.join("\n")}\n`);
  const many = readAnswers(text, mae, { sample: text });
  gradeSubmission(text, many);
  const before = process.cpuUsage();
  for (let i = 0; i < 5; i++) assert.equal(gradeSubmission(text, many).score, 0);
  const used = process.cpuUsage(before);
  const milliseconds = (used.user + used.system) / 5 / 1000;
  assert.ok(milliseconds < 50, `${milliseconds} ms`);
});
