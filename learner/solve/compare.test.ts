import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { percentileIntervals } from "../evaluation/bootstrap.ts";
import { newResult, newSample, scratchFolder } from "../store/store.fixture.ts";
import { openStore } from "../store/store.ts";
import { type Attempt, compare, type Effort, intervalOfBest, tablePlaces } from "./compare.ts";
import { compareCsv, compareMarkdown } from "./compare-table.ts";
import { effortsOf } from "./efforts.ts";

const attempts = (...scores: (number | undefined)[]): Attempt[] =>
  scores.map((score, index) => ({
    root: `r${index}`,
    seconds: 30 * (index + 1),
    ...(score !== undefined && { score }),
  }));
const effort = (arm: string, folder: string, scores: (number | undefined)[], change: Partial<Effort> = {}): Effort => ({
  ...{ folder, arm, task: "diamonds", metric: "MAE", direction: "Lower", graded: "{}", attempts: attempts(...scores) },
  ...change,
});

describe("A comparison", () => {
  const efforts = [
    effort("greedy", "a", [undefined, 9, 5, 7], { tokens: 100, cost: 0.5 }),
    effort("greedy", "b", [8, 9, 3, 4], { tokens: 50 }),
    effort("best-of-n", "c", [undefined, 6]),
  ];
  const [{ arms }] = compare(efforts) as [ReturnType<typeof compare>[0]];
  const curve = (index: number, axis: "executions" | "seconds") =>
    arms[index]!.curves[axis].map(({ at, best, folders, valid }) => [at, best, folders, valid]);

  test("has the mean of the folders' best scores so far, by executions and by time", () => {
    assert.deepEqual(curve(0, "executions"), [
      [1, 8, 2, 1],
      [2, 8.5, 2, 2],
      [4, 4, 2, 2],
    ]);
    assert.deepEqual(curve(0, "seconds"), [
      [10, null, 2, 0],
      [20, null, 2, 0],
      [30, 8, 2, 1],
      [60, 8.5, 2, 2],
      [120, 4, 2, 2],
    ]);
  });

  test("has no number where no folder of an arm came so far", () => {
    assert.deepEqual(curve(1, "executions"), [
      [1, null, 1, 0],
      [2, 6, 1, 1],
    ]);
  });

  test("adds up executions, time, tokens and cost", () => {
    const [{ executions, seconds, tokens, cost, end }, other] = arms as [(typeof arms)[0], (typeof arms)[0]];
    assert.deepEqual([executions, seconds, tokens, cost, end.best, end.standardError], [8, 240, 150, 0.5, 4, 1]);
    assert.deepEqual([other.tokens, other.end.standardError, other.end.interval], [null, null, [6, 6]]);
  });

  test("is printed as Markdown and CSV", () => {
    const results = compare(efforts);
    const text = compareMarkdown(results);
    assert.match(text, /^## diamonds \(MAE, lower is better\)$/m);
    assert.match(text, /^\| {11}\| +1 \| +2 \| +4 \|$/m);
    assert.match(
      text,
      /greedy .*8\.000 \[8\.000, 8\.000\] \(1 of 2\) .*8\.500 \[8\.000, 9\.000\] .*4\.000 \[3\.000, 5\.000\] \|$/m,
    );
    assert.match(text, /best-of-n .*N\/A \| +6\.000 \[6\.000, 6\.000\] \| +– \|$/m);
    assert.match(text, /greedy .*4\.000 \+\/- 1\.000 \| +2 \| +8 \| +4 min 0 s \| +150 \| 0\.50 USD \|$/m);
    const [head, first] = compareCsv(results).split("\n");
    assert.equal(head, "task,metric,direction,arm,axis,at,best,low,high,folders,valid");
    assert.equal(first, "diamonds,MAE,Lower,greedy,executions,1,8,8,8,2,1");
  });

  test("refuses scores that do not compare, and keeps tasks apart", () => {
    for (const change of [{ metric: "RMSE" }, { direction: "Higher" as const }, { graded: '{"privateShare":0.5}' }])
      assert.throws(
        () => compare([efforts[0]!, effort("x", "d", [1], change)]),
        /^Error: d has task diamonds with .*such scores do not compare/,
      );
    assert.equal(compare([efforts[0]!, effort("x", "d", [1], { task: "wage", metric: "RMSE" })]).length, 2);
  });
});

test("places of a table are round, at most eight, and end with the largest", () => {
  assert.deepEqual(tablePlaces("executions", 40), [1, 2, 5, 10, 20, 40]);
  assert.deepEqual(tablePlaces("executions", 3000), [20, 50, 100, 200, 500, 1000, 2000, 3000]);
  assert.deepEqual(tablePlaces("seconds", 100), [10, 20, 30, 60, 100]);
  assert.deepEqual(tablePlaces("executions", 1), [1]);
});

describe("The interval of a single folder", () => {
  test("is the one that drawing would find", () => {
    const scores = Array.from({ length: 40 }, (_, i) => (i % 5 === 0 ? null : (i * 37) % 101));
    const drawn = (better: (...values: number[]) => number) =>
      percentileIntervals(
        scores,
        (some: (number | null)[]) => {
          const known = some.flatMap((score) => score ?? []);
          return { best: known.length > 0 ? better(...known) : null };
        },
        { seed: 1, draws: 20_000 },
      ).best;
    assert.deepEqual(intervalOfBest(scores, "Higher"), drawn(Math.max));
    assert.deepEqual(intervalOfBest(scores, "Lower"), drawn(Math.min));
  });

  test("is of drafts with their descendants: a tree is drawn as a whole", () => {
    const tree: Attempt[] = [5, 4, 3, 2].map((score, index) => ({ root: "a", seconds: index, score }));
    const interval = (all: Attempt[]) => compare([effort("x", "a", [], { attempts: all })])[0]!.arms[0]!.end.interval;
    assert.deepEqual(interval(tree), [2, 2]);
    assert.deepEqual(interval([...tree, { root: "b", seconds: 9, score: 8 }]), [2, 8]);
  });

  test("does not exist without a valid program", () => {
    assert.equal(intervalOfBest([null, null], "Lower"), null);
    assert.equal(intervalOfBest([], "Lower"), null);
  });
});

describe("A folder's efforts", () => {
  const home = scratchFolder();
  const TASK =
    "{name: wage, grader: {metric: MAE, idColumn: id, targetColumns: [y], direction: Lower}, publicData: {path: /a}, privateData: {path: /b}}";

  /** A store whose clock is the test's: samples end at given seconds. */
  async function lay(name: string, purpose: string, files: Record<string, object>) {
    mkdirSync(join(home, name), { recursive: true });
    const text = `{apiVersion: longrun.dev/v1alpha1, kind: TrainingRun, metadata: {name: a}, spec: {tasks: [${TASK}], model: {policy: quickstart}}}`;
    writeFileSync(join(home, name, "trainingrun.yaml"), text);
    for (const [file, value] of Object.entries(files)) writeFileSync(join(home, name, file), JSON.stringify(value));
    let now = 1_000_000;
    const store = openStore(join(home, name, "store.sqlite"), { now: () => now });
    await store.beginLineage(() => false);
    const end = (id: string, atSeconds: number, score: number | undefined, previous?: string) => {
      store.addSamples([
        newSample(id, { purpose, task: "wage", ...(previous && { previous, kind: "improve" as const }) }),
      ]);
      const [lease] = store.leases.takeAll(["actor"]);
      now = 1_000_000 + 1000 * atSeconds;
      store.leases.accept("actor", lease!, newResult());
      store.setGrade(id, { valid: score !== undefined, reward: 0, reason: "", ...(score !== undefined && { score }) });
    };
    return { store, end };
  }

  test("of a search have the time without interruptions, and each solution's draft", async () => {
    const sessions = [
      [1_000_000, 1_010_000],
      [1_050_000, 1_060_000],
    ];
    const { store, end } = await lay("search", "solve", {
      "solve.json": { search: "tree", policy: { iteration: 3 } },
      "summary.json": { solve: { sessions, usage: { promptTokens: 5, answerTokens: 6 } } },
    });
    end("s1", 5, undefined);
    end("s2", 9, 4, "s1");
    end("s3", 55, 3, "s2");
    end("s4", 56, 9);
    store.addSamples([newSample("s5", { purpose: "solve", task: "wage" })]);
    store.close();
    const [found] = effortsOf(join(home, "search"));
    assert.deepEqual([found!.arm, found!.metric, found!.tokens], ["tree, quickstart after iteration 3", "MAE", 11]);
    assert.deepEqual(found!.attempts, [
      { root: "s1", seconds: 5 },
      { root: "s1", seconds: 9, score: 4 },
      { root: "s1", seconds: 15, score: 3 },
      { root: "s4", seconds: 16, score: 9 },
    ]);
  });

  test("of a run have its training samples at its own time, which evaluations do not count to", async () => {
    const { store, end } = await lay("run", "training", {});
    end("s1", 20, 5);
    end("s2", 30, 4, "s1");
    store.commitIteration({ iteration: 1, sampleIds: ["s1", "s2"], metrics: { elapsedSeconds: 12 } });
    end("s3", 100, 3);
    store.close();
    const [found] = effortsOf(join(home, "run"));
    assert.equal(found!.arm, "RL of quickstart");
    assert.deepEqual(
      found!.attempts.map(({ seconds, score }) => [seconds, score]),
      [
        [2, 5],
        [12, 4],
        [82, 3],
      ],
    );
  });

  test("are refused where there are none", () => {
    assert.throws(() => effortsOf(home), /this is no folder of a run or of longrun solve/);
    mkdirSync(join(home, "young"));
    writeFileSync(join(home, "young/trainingrun.yaml"), "{}");
    assert.throws(() => effortsOf(join(home, "young")), /nothing has run in it yet/);
  });
});
