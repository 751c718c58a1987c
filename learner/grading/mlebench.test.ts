import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { test } from "node:test";
import { brotliDecompressSync } from "node:zlib";
import fc from "fast-check";
import { MLE_BENCH_TASKS } from "../../crds/mlebench.ts";
import { type Answers, type Graded, gradeSubmission, readAnswers } from "./grade.ts";
import { maxSubmissionBytes } from "./mlebench.ts";
import { mleBenchTask, mleBenchTasks, rankOf } from "./mlebench-tasks.ts";
import { privatePartOf } from "./private-score.ts";
import { roundExact, roundNumpy } from "./rounding.ts";

interface Case {
  task: string;
  case: string;
  answers: string;
  submission: string;
  outcome: "score" | "nonfinite" | "invalid" | "error" | "crash" | "no_submission";
  score: number | string | null;
  scoreRaw: number | string | null;
  agrees: boolean;
  tags: string[];
}

/** Answers of MLE-bench's own graders; README.md in the same folder names the libraries. */
const fixture = JSON.parse(
  brotliDecompressSync(
    readFileSync(new URL("../../test/fixtures/grading/mle-bench.json.br", import.meta.url)),
  ).toString(),
) as {
  cases: Case[];
  ranks: Record<string, string | number | boolean | null>[];
  thresholds: Record<string, Record<string, number | boolean>>;
  files: Record<string, string | { base64: string }>;
};

function fileOf(path: string): Buffer | undefined {
  const file = fixture.files[path];
  if (file === undefined) return undefined;
  return typeof file === "string" ? Buffer.from(file) : Buffer.from(file.base64, "base64");
}

const opened = new Map<string, Answers>();

function answersOf({ task, answers }: Pick<Case, "task" | "answers">): Answers {
  const found = opened.get(answers) ?? readAnswers(fileOf(answers)!, mleBenchTask(task)!);
  opened.set(answers, found);
  return found;
}

function gradeCase(one: Case): Graded {
  const bytes = fileOf(one.submission);
  if (!bytes || extname(one.submission).toLowerCase() !== ".csv")
    return { valid: false, reason: { code: "noSubmission", message: "" }, guards: [] };
  return gradeSubmission(bytes, answersOf(one));
}

test("an unexpected column that looks like an expected one is shown in quotes", () => {
  const task = mleBenchTask("plant-pathology-2020-fgvc7")!;
  const header = "image_id,healthy,multiple_diseases,rust,scab";
  const answers = readAnswers(Buffer.from(`${header}\na,1,0,0,0\nb,0,1,0,0\n`), task);
  const { reason } = gradeSubmission(Buffer.from(`${header} \na,1,0,0,0\nb,0,1,0,0\n`), answers);
  assert.match(reason.message, /^unexpected column "scab "; the columns are exactly /);
});

test("whole-number labels beyond 2^53 are compared exactly, as scikit-learn compares int64", () => {
  const grade = (task: string, truth: string, predicted: string) =>
    gradeSubmission(Buffer.from(predicted), readAnswers(Buffer.from(truth), mleBenchTask(task)!));
  const [a, b] = ["1712345678901234567", "1712345678901234568"];
  const essays = "learning-agency-lab-automated-essay-scoring-2";
  const truth = `essay_id,score\n1,1\n2,${a}\n3,${b}\n4,1\n`;
  assert.equal(grade(essays, truth, `essay_id,score\n1,1\n2,${b}\n3,${a}\n4,${a}\n`).score, 0.4);
  const covers = "tabular-playground-series-dec-2021";
  assert.equal(grade(covers, `Id,Cover_Type\n1,${a}\n2,${b}\n`, `Id,Cover_Type\n1,${a}\n2,${a}\n`).score, 0.5);
});

/** Skips cases in which an unstable sort pairs equal ids, or versions of the libraries disagree. */
const skipped = ({ agrees, tags }: Case) =>
  !agrees || tags.includes("unstable_sort") || tags.includes("ill_conditioned");

test("graders give the answers of MLE-bench's graders", async (t) => {
  assert.deepEqual([fixture.cases.length, fixture.cases.filter(skipped).length], [685, 20]);
  for (const task of Object.keys(mleBenchTasks()))
    await t.test(task, () => {
      for (const one of fixture.cases.filter((some) => some.task === task && !skipped(some))) {
        const { valid, score, scoreRaw, reason } = gradeCase(one);
        const why = `${one.case}: ${reason.code} ${reason.message}`;
        assert.equal(valid, one.outcome === "score", why);
        assert.match(reason.message, /^\P{C}*$/u, why);
        if (one.outcome !== "score") {
          assert.deepEqual([score, scoreRaw], [undefined, undefined]);
          continue;
        }
        assert.ok(Math.abs(scoreRaw! - Number(one.scoreRaw)) <= 1e-9, `${why} ${scoreRaw}, not ${one.scoreRaw}`);
        // Ties in the fifth decimal are common here, and the last bit decides them.
        if (["RocAuc", "Accuracy"].includes(mleBenchTask(task)!.metric))
          assert.equal(scoreRaw, Number(one.scoreRaw), why);
        // A rounded score can differ if the raw one differs in its last bit.
        assert.ok(score === one.score || scoreRaw !== one.scoreRaw, `${why} ${score}, not ${one.score}`);
      }
    });
});

test("rounding equals the reference's, also for ties", () => {
  const ties = fixture.cases.filter(({ tags, agrees }) => tags.includes("rounding") && agrees);
  assert.ok(ties.length >= 7);
  for (const one of ties) assert.equal(gradeCase(one).score, one.score, one.case);
});

test("rounding equals Python's round and numpy's", () => {
  // value, round(value, 5), numpy.float64(value).round(5)
  const table = [
    [1 / 64, 0.01562, 0.01562],
    [3 / 64, 0.04688, 0.04688],
    [-1 / 64, -0.01562, -0.01562],
    [-3 / 64, -0.04688, -0.04688],
    [207 / 320, 0.64687, 0.64688],
    [201 / 320, 0.62813, 0.62813],
    [0.000005, 0.00001, 0],
    [1.000005, 1.00001, 1],
    [2.5e-5, 3e-5, 2e-5],
    [36.04365338911715, 36.04365, 36.04365],
    [123456.789015, 123456.78902, 123456.78902],
  ] as const;
  for (const [value, exact, numpy] of table)
    assert.deepEqual([roundExact(value), roundNumpy(value)], [exact, numpy], String(value));
});

test("a score earns the leaderboard's medal and is compared with the median", () => {
  const { leaderboard } = mleBenchTask("leaf-classification")!;
  assert.equal(rankOf(leaderboard.median, leaderboard).aboveMedian, false, "strictly better than the median");
  assert.equal(rankOf(leaderboard.bronze, leaderboard).bronzeMedal, true, "a medal from its threshold on");
  assert.ok(fixture.ranks.length > 100);
  for (const { competition, score, ...expected } of fixture.ranks) {
    const number = score === null ? undefined : Number(String(score).replace("inf", "Infinity").replace("nan", "NaN"));
    const rank = rankOf(number, mleBenchTask(String(competition))!.leaderboard);
    assert.deepEqual(
      {
        gold_medal: rank.goldMedal,
        silver_medal: rank.silverMedal,
        bronze_medal: rank.bronzeMedal,
        above_median: rank.aboveMedian,
        any_medal: rank.anyMedal,
      },
      expected,
      `${competition} ${score}`,
    );
  }
});

test("guards flag a copy of the sample submission, one prediction throughout, and a perfect score", () => {
  const flags = (task: string, name: string) => {
    const one = fixture.cases.find((some) => some.task === task && some.case === name)!;
    const sample = fixture.cases.find((some) => some.answers === one.answers && some.case === "sample_submission");
    const answers = readAnswers(fileOf(one.answers)!, mleBenchTask(task)!, {
      ...(sample && { sample: fileOf(sample.submission)! }),
    });
    return gradeSubmission(fileOf(one.submission)!, answers).guards;
  };
  assert.deepEqual(flags("spooky-author-identification", "sample_submission"), ["sampleSubmission", "constant"]);
  assert.deepEqual(flags("spooky-author-identification", "constant"), ["constant"]);
  assert.deepEqual(flags("spooky-author-identification", "perfect_A"), ["perfect"]);
  assert.deepEqual(flags("spooky-author-identification", "shuffled_rows"), []);
  assert.deepEqual(flags("tweet-sentiment-extraction", "perfect_C"), ["perfect"]);
  assert.deepEqual(flags("tweet-sentiment-extraction", "all_empty"), ["constant"]);
});

test("of an MLE-bench task with a private part, rewards see the public rows and the private score the others", () => {
  const answers = readAnswers(
    Buffer.from("Id,Cover_Type\n1,1\n2,2\n3,3\n4,4\n"),
    mleBenchTask("tabular-playground-series-dec-2021")!,
    { split: "EveryOther" },
  );
  const scoresOf = (text: string) => {
    const submission = Buffer.from(text);
    return [gradeSubmission(submission, answers).score, privatePartOf(answers).privateScore(submission)?.score];
  };
  assert.deepEqual(scoresOf("Id,Cover_Type\n4,4\n3,3\n2,7\n1,7\n"), [0.5, 0.5]);
  assert.deepEqual(scoresOf("Id,Cover_Type\n4,7\n3,3\n2,7\n1,1\n"), [1, 0]);
});

test("the table of tasks has the leaderboards' thresholds and directions", () => {
  assert.deepEqual(Object.keys(mleBenchTasks()).sort(), Object.keys(fixture.thresholds).sort());
  assert.deepEqual(
    Object.keys(mleBenchTasks()),
    MLE_BENCH_TASKS,
    "a TrainingRun may name these tasks without a grader",
  );
  for (const [id, { is_lower_better, metric: _, ...thresholds }] of Object.entries(fixture.thresholds)) {
    const task = mleBenchTask(id)!;
    assert.deepEqual(task.leaderboard, thresholds);
    assert.equal(task.direction, is_lower_better ? "Lower" : "Higher");
  }
});

/** Valid cases with rows as text lines, small enough to shuffle. */
const plain = fixture.cases.filter((one) => {
  const text = fixture.files[one.submission];
  return one.outcome === "score" && !skipped(one) && typeof text === "string" && !text.includes('"') && /\n/.test(text);
});
const anyPlain = fc.constantFrom(...plain);
const linesOf = (one: Case) => (fixture.files[one.submission] as string).replace(/^\uFEFF/, "").split(/\r?\n/);

test("no grade of a task with a private part depends on the private answers", () => {
  let changed = 0;
  for (const one of plain) {
    const answers = fixture.files[one.answers];
    if (typeof answers !== "string" || answers.includes('"')) continue;
    const [head, ...rows] = answers.trimEnd().split(/\r?\n/) as [string, ...string[]];
    const idAt = head.split(",").indexOf(mleBenchTask(one.task)!.idColumn);
    const cells = rows.map((row) => row.split(","));
    const odd = cells.filter((_, row) => row % 2 === 1);
    // Each private row gets the answers of the next one.
    const moved = cells.map((row, at) =>
      at % 2 === 0 ? row : row.map((cell, c) => (c === idAt ? cell : odd[((at - 1) / 2 + 1) % odd.length]![c]!)),
    );
    const open = (lines: string[]) =>
      readAnswers(Buffer.from([head, ...lines, ""].join("\n")), mleBenchTask(one.task)!, { split: "EveryOther" });
    const [before, after] = [open(rows), open(moved.map((row) => row.join(",")))];
    const submission = fileOf(one.submission)!;
    assert.deepEqual(
      gradeSubmission(submission, after),
      gradeSubmission(submission, before),
      `${one.task} ${one.case}`,
    );
    const [was, is] = [
      privatePartOf(before).privateScore(submission)?.score,
      privatePartOf(after).privateScore(submission)?.score,
    ];
    if (was !== is) changed++;
  }
  assert.ok(changed > 30, `${changed} of ${plain.length} private scores changed`);
});
const graded = (one: Case, lines: string[]) => gradeSubmission(Buffer.from(lines.join("\n")), answersOf(one));
const shuffled = <Item>(items: Item[], seed: number) =>
  items
    .map((item, i) => [Math.sin(seed + i * 12.9898) % 1e-3, item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
const near = (a: Graded, b: Graded) =>
  assert.ok(
    a.valid === b.valid && Math.abs((a.scoreRaw ?? 0) - (b.scoreRaw ?? 0)) < 1e-9,
    `${a.scoreRaw} ${b.scoreRaw}`,
  );

test("the order of rows changes nothing, unless rows are matched by position", () => {
  const byId = plain.filter(
    ({ task, case: name }) => mleBenchTask(task)!.ids !== "Position" && !/ragged|one_field/.test(name),
  );
  fc.assert(
    fc.property(fc.constantFrom(...byId), fc.integer({ min: 1, max: 1e6 }), (one, seed) => {
      const [header, ...rows] = linesOf(one).filter((line) => line.trim() !== "");
      near(gradeCase(one), graded(one, [header!, ...shuffled(rows, seed)]));
    }),
    { numRuns: 200 },
  );
});

test("the order of columns changes nothing, except for spooky's first column", () => {
  fc.assert(
    fc.property(anyPlain, fc.integer({ min: 1, max: 1e6 }), (one, seed) => {
      const rows = linesOf(one)
        .filter((line) => line.trim() !== "")
        .map((line) => line.split(","));
      fc.pre(rows.every((row) => row.length === rows[0]!.length));
      const first = one.task.startsWith("spooky") ? 1 : 0;
      const order = [...rows[0]!.keys()].slice(first);
      const places = [...(first ? [0] : []), ...shuffled(order, seed)];
      near(
        gradeCase(one),
        graded(
          one,
          rows.map((row) => places.map((place) => row[place]).join(",")),
        ),
      );
    }),
    { numRuns: 200 },
  );
});

test("an id that stands twice, in place of another or beside it, is refused", () => {
  const byId = plain.filter(({ task }) => mleBenchTask(task)!.ids !== "Position");
  fc.assert(
    fc.property(fc.constantFrom(...byId), fc.nat(), fc.nat(), fc.boolean(), (one, from, to, beside) => {
      const [header, ...rows] = linesOf(one).filter((line) => line.trim() !== "");
      const [a, b] = [from % rows.length, to % rows.length];
      fc.pre(a !== b && !/^\s*$/.test(rows[a]!));
      const changed = beside ? [...rows, rows[a]!] : rows.with(b, rows[a]!);
      const { valid, reason } = graded(one, [header!, ...changed]);
      assert.equal(valid, false, reason.message);
    }),
    { numRuns: 200 },
  );
});

test("no bytes make a grader throw", () => {
  const answers = [...new Map(fixture.cases.map((one) => [one.task, answersOf(one)])).values()];
  const piece = fc.constantFrom(
    ...'id,Id,x,0,1,1.5,nan,NA,True,","",\r,\n,\r\n, ,\t,\0,é,1e999,-,18446744073709551616,9223372036854775808'.split(
      ",",
    ),
    ",",
    "\n",
  );
  const text = fc.array(piece, { maxLength: 60 }).map((pieces) => Buffer.from(pieces.join("")));
  const raw = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
  // A valid submission with an inserted or removed byte gets further than random bytes.
  const bitten = fc.tuple(anyPlain, fc.nat(), fc.uint8Array({ maxLength: 3 })).map(([one, at, bytes]) => {
    const file = fileOf(one.submission)!;
    return Buffer.concat([file.subarray(0, at % file.length), bytes, file.subarray((at % file.length) + (at % 2))]);
  });
  fc.assert(
    fc.property(fc.oneof(text, raw, bitten), fc.constantFrom(...answers), (bytes, some) => {
      const { valid, score, scoreRaw, reason } = gradeSubmission(bytes, some);
      assert.equal(valid, Number.isFinite(score) && Number.isFinite(scoreRaw));
      assert.equal(valid, reason.code === "valid");
    }),
    { numRuns: 1000 },
  );
});

test("long cells, many columns and many rows are refused in bounded time", async (t) => {
  const size = 200_000;
  const cells: Record<string, string> = {
    digits: "9".repeat(size),
    zeros: `${"0".repeat(size)}5`,
    fraction: `0.${"3".repeat(size)}`,
    exponent: `1e${"9".repeat(size)}`,
    blanks: `1${" ".repeat(size)}x`,
    "blanks first": `${" ".repeat(size)}1`,
    underscores: `1${"_1".repeat(size)}`,
    "other digits": "٣".repeat(size),
    quotes: `"${'""'.repeat(size)}"`,
    words: "a ".repeat(size),
  };
  const small = [...new Map(plain.map((one) => [one.task, one])).values()];
  for (const [name, cell] of Object.entries(cells))
    await t.test(name, () => {
      const started = process.cpuUsage();
      for (const one of small) {
        const rows = linesOf(one).filter((line) => line !== "");
        const fields = rows[1]!.split(",");
        for (const place of new Set([0, fields.length - 1]))
          graded(one, rows.with(1, fields.with(place, cell).join(",")));
      }
      const { user, system } = process.cpuUsage(started);
      assert.ok(user + system < 5e6, `${(user + system) / 1e6} s`);
    });
  const answers = answersOf(fixture.cases.find(({ task }) => task === "tabular-playground-series-may-2022")!);
  const junk: Record<string, [string, string]> = {
    "a million columns": ["id,target".padEnd(2e6, ",x"), "tooManyColumns"],
    "a million fields in a row": [`id,target\n${"1,".repeat(1e6)}`, "tooManyColumns"],
    "ten million rows": [`id,target\n${"1\n".repeat(1e7)}`, "rowCount"],
    "twenty million blank lines": ["\n".repeat(2e7), "emptyFile"],
  };
  for (const [name, [text, code]] of Object.entries(junk))
    await t.test(name, () => {
      const bytes = Buffer.from(text);
      const started = process.cpuUsage();
      assert.equal(gradeSubmission(bytes, answers).reason.code, code);
      const { user, system } = process.cpuUsage(started);
      assert.ok(user + system < 2e6, `${(user + system) / 1e6} s`);
    });
  await t.test("a text of millions of words is graded in bounded time", () => {
    const one = plain.find(({ task, case: name }) => task.startsWith("tweet") && name === "all_empty")!;
    const [header, first, ...rows] = linesOf(one);
    const words = Array.from({ length: 4e6 }, (_, i) => i.toString(36)).join(" ");
    const started = process.cpuUsage();
    assert.equal(graded(one, [header!, `${first!.split(",")[0]},${words}`, ...rows]).reason.code, "longText");
    const { user, system } = process.cpuUsage(started);
    assert.ok(user + system < 2e6, `${(user + system) / 1e6} s`);
  });
  await t.test("a submission with more bytes than any task needs is refused", () => {
    const { reason } = gradeSubmission(Buffer.alloc(maxSubmissionBytes + 1), answers);
    assert.equal(reason.code, "fileTooLarge");
  });
});
