import assert from "node:assert/strict";
import { test } from "node:test";
import { mleBenchTask } from "../grading/mlebench-tasks.ts";
import { bestProgram, changeOf, type EvaluatedProgram, headline, summarize } from "./figures.ts";

let made = 0;
const valid = (score: number, change: Partial<EvaluatedProgram> = {}): EvaluatedProgram => ({
  ...{ id: `s${++made}`, kind: "scratch", valid: true, score, reported: score, reward: -score, durationSeconds: 1.5 },
  ...change,
});
const failed = (change: Partial<EvaluatedProgram> = {}): EvaluatedProgram => ({
  ...{ id: `s${++made}`, kind: "scratch", valid: false, reward: -10, durationSeconds: 2.5 },
  ...change,
});
const AT = { iteration: 0, lost: 0, seed: 0 };

test("figures have means and the best score by direction", () => {
  const programs = [valid(3), valid(1), failed({ durationSeconds: undefined })];
  const scale = { direction: "Lower", rewardRange: { worst: 2, best: 0 } } as const;
  const { intervals, ...figures } = summarize(programs, scale, { ...AT, iteration: 7, lost: 2 });
  // 3 is beyond the worst score, 1 is half way to the best.
  assert.deepEqual(figures, {
    ...{ iteration: 7, lost: 2, samples: 3, validFraction: 2 / 3, meanScore: 2, bestScore: 1 },
    ...{ meanNormalizedScore: 0.25, meanReward: -14 / 3, meanDurationSeconds: 1.5 },
    ...{ medalFraction: null, aboveMedianFraction: null, medals: null, bestMedal: null },
  });
  assert.equal(summarize(programs, { direction: "Higher" }, AT).bestScore, 3);
  assert.deepEqual(intervals.meanScore, [1, 3]);
  assert.deepEqual(intervals.validFraction, [0, 1]);
  assert.equal(intervals.medalFraction, null);
});

test("figures of an evaluation without valid or without any programs have no scores", () => {
  for (const programs of [[failed()], []]) {
    const { bestScore, meanScore, validFraction, samples, intervals } = summarize(programs, { direction: "Lower" }, AT);
    assert.deepEqual([bestScore, meanScore, validFraction, samples], [null, null, 0, programs.length]);
    assert.equal(intervals.bestScore, null);
  }
});

test("figures of an evaluation with improvements are by kind of prompt, with the better of the two", () => {
  const programs = [valid(5, { id: "a" }), failed(), valid(2, { kind: "improve", previous: "a" })];
  const { kinds, bestScore, samples } = summarize(programs, { direction: "Lower" }, AT);
  assert.deepEqual([samples, bestScore], [3, 2]);
  assert.deepEqual([kinds?.scratch.bestScore, kinds?.scratch.validFraction], [5, 0.5]);
  assert.deepEqual([kinds?.improve.bestScore, kinds?.improve.samples], [2, 1]);
  assert.equal(summarize([valid(1)], { direction: "Lower" }, AT).kinds, undefined);
});

test("figures draw a program's improvements together with it", () => {
  const family = (id: string, score: number) => [
    valid(score, { id }),
    ...Array.from({ length: 9 }, () => valid(score, { kind: "improve", previous: id })),
  ];
  const scale = { direction: "Higher" } as const;
  const { intervals, kinds } = summarize([...family("a", 0), ...family("b", 1)], scale, AT);
  assert.deepEqual(intervals.meanScore, [0, 1], "two families, not twenty programs");
  assert.deepEqual(kinds?.improve.intervals.meanScore, [0, 1]);
});

test("figures count medals by the leaderboard, and programs strictly above the median", () => {
  const { leaderboard } = mleBenchTask("spooky-author-identification")!;
  const { gold, silver, bronze, median } = leaderboard;
  const programs = [valid(gold), valid(silver), valid(bronze), valid(median), valid(median - 1e-5), failed()];
  const figures = summarize(programs, { direction: "Lower", leaderboard }, AT);
  assert.deepEqual(figures.medals, { gold: 1, silver: 1, bronze: 1 });
  assert.deepEqual([figures.bestMedal, figures.medalFraction, figures.aboveMedianFraction], ["gold", 3 / 6, 4 / 6]);
  const none = summarize([valid(median)], { direction: "Lower", leaderboard }, AT);
  assert.deepEqual([none.bestMedal, none.medalFraction, none.medals?.bronze], [null, 0, 0]);
});

test("figures with a private part choose the best program by its public score and report the private one", () => {
  const chosen = valid(1, { reported: 4 });
  const lucky = valid(2, { reported: 0.5 });
  assert.equal(bestProgram([lucky, chosen], "Lower"), chosen);
  const split = summarize([lucky, chosen], { direction: "Lower", isSplit: true }, AT);
  assert.deepEqual([split.bestScore, split.meanScore], [4, 2.25]);
  assert.deepEqual([split.publicBestScore, split.publicMeanScore], [1, 1.5]);
  const undefinedThere = summarize([valid(1, { reported: undefined })], { direction: "Lower" }, AT);
  assert.deepEqual([undefinedThere.bestScore, undefinedThere.validFraction], [null, 1]);
});

test("the change is the difference of after and before, with its interval", () => {
  const before = [valid(10), valid(11), failed(), valid(12)];
  const after = [valid(5), valid(6), valid(5), valid(6)];
  const { meanScore, validFraction, bestScore, intervals } = changeOf(before, after, { direction: "Lower" }, 0);
  assert.deepEqual([meanScore, validFraction, bestScore], [-5.5, 0.25, -5]);
  const [low, high] = intervals.meanScore!;
  assert.ok(low < -5.5 && -5.5 < high && high < -4, `${low} ${high}`);
  assert.equal(changeOf([failed()], after, { direction: "Lower" }, 0).meanScore, null);
});

test("the status has a headline with both policies", () => {
  const programs = [valid(5, { id: "x" }), valid(2, { kind: "improve", previous: "x" })];
  const summary = summarize(programs, { direction: "Lower" }, AT);
  const { before, after, protocol } = headline({ before: summary });
  assert.deepEqual([before?.best, before?.bestFromScratch, before?.bestImproved, before?.mean], [2, 5, 2, 3.5]);
  assert.deepEqual([after, protocol], [undefined, undefined]);
});
